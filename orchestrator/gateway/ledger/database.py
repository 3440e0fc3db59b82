"""The ledger in the database: implements the rules of `ledger` with the statements of `queries` and `spending_queries`.

Every process has a name that survives restarts. A call in flight has a row with its owner's name and an expiry time, which
`beat` extends. A restarted process therefore knows at once which calls it left behind, and other processes take them over
once they expire.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from orchestrator.db.session import Database, DatabaseUnavailable, Plain
from orchestrator.gateway.calls import DayCap, Settlement, Source
from orchestrator.gateway.ledger import queries as calls
from orchestrator.gateway.ledger import spending_queries
from orchestrator.gateway.ledger.ledger import (
    BatchedRequest,
    CallState,
    Collected,
    Failure,
    KeyConflict,
    LedgerUnavailable,
    MadeElsewhere,
    NoRoom,
    NotRunning,
    Opened,
    Opening,
    Recovery,
    Reservation,
    Spending,
    Stored,
    Unanswered,
)
from orchestrator.gateway.ledger.prices import NANO_USD_PER_USD, usd
from orchestrator.gateway.protocols.protocol import Finish, TokenUsage
from orchestrator.gateway.provider_batches import queries as batch_queries
from orchestrator.system.clock import Clock
from orchestrator.system.zstd import compress_quickly, decompress
from runner.contract.run_spec import Protocol

BELIEVED_S = 60.0
NOBODY = "none"
"""The payer of an answer that another run bought."""
STOPPED = "the orchestrator stopped"

T = TypeVar("T")


class DatabaseLedger:
    def __init__(self, db: Database, clock: Clock, owner: str) -> None:
        self._db = db
        self._clock = clock
        self._owner = owner
        self._live: set[tuple[str, str]] = set()

    async def recover(self) -> Recovery:
        def work(connection: Plain) -> Recovery:
            return self._abandoned(connection, calls.flights_of(connection, self._owner))

        return await self._write(work)

    async def beat(self) -> Recovery:
        def work(connection: Plain) -> Recovery:
            calls.extend_flights(connection, self._owner, self._believed_until())
            return self._abandoned(connection, calls.flights_overdue(connection, self._clock.now()))

        return await self._write(work)

    async def open(self, opening: Opening) -> Opened:
        try:
            return await self._write(lambda connection: self._open(connection, opening), synced=False)
        except LedgerUnavailable:
            self.released(opening.run_id, opening.call_key)
            raise

    async def sent(self, run_id: str, call_key: str) -> None:
        await self._write(lambda connection: calls.mark_sent(connection, run_id, call_key))

    async def refused(self, run_id: str, call_key: str) -> None:
        await self._write(lambda connection: calls.change(connection, run_id, call_key, state=CallState.RESERVED))

    async def again(
        self, run_id: str, call_key: str, budget_nano_usd: int | None, day_caps: tuple[DayCap, ...] = ()
    ) -> bool:
        def work(connection: Plain) -> bool:
            _lock(connection, run_id, day_caps)
            call = calls.under_way(connection, run_id, call_key)
            if call is None:
                raise LookupError(f"no call {call_key} of run {run_id} is in the ledger")
            if self._no_room(connection, run_id, _nano_usd(call.reserved_usd), budget_nano_usd, day_caps) is not None:
                return False
            reason = "a try failed after it was sent"
            spending_queries.record_loss(connection, run_id, call_key, call.reserved_usd, reason, self._clock.now())
            return True

        return await self._write(work)

    async def settle(self, run_id: str, call_key: str, settlement: Settlement) -> None:
        now = self._clock.now()
        await self._write(lambda connection: settle_within(connection, run_id, call_key, settlement, now))

    async def fail(self, run_id: str, call_key: str, failure: Failure) -> None:
        def work(connection: Plain) -> None:
            times = {"queue_s": failure.queue_s, "provider_s": failure.provider_s}
            self._give_up(connection, run_id, call_key, failure.error, lost=failure.lost, **times)

        await self._write(work)

    def released(self, run_id: str, call_key: str) -> None:
        self._live.discard((run_id, call_key))

    async def spending(self, run_id: str) -> Spending:
        try:
            money = await self._db.read(lambda session: spending_queries.money(session.connection(), run_id))
        except DatabaseUnavailable as error:
            raise LedgerUnavailable(str(error)) from error
        return Spending(
            _nano_usd(money.settled_usd), _nano_usd(money.lost_usd), _nano_usd(money.reserved_usd), money.lost_sends
        )

    def _open(self, connection: Plain, opening: Opening) -> Opened:
        run_id, call_key = opening.run_id, opening.call_key
        _lock(connection, run_id, opening.day_caps)
        look = calls.look(connection, run_id, call_key, opening.attempt)
        if not look.runs:
            return NotRunning()
        state = look.state
        if state in (CallState.RESERVED, CallState.SENT):
            flight = calls.flight(connection, run_id, call_key)
            if flight is None:
                over = True
            elif flight.owner == self._owner:
                over = (run_id, call_key) not in self._live  # regardless of the clock
            else:
                over = flight.until < self._clock.now()
            if over:
                self._abandoned(connection, [(run_id, call_key)])
                state = CallState.FAILED
        if state is not None and state != CallState.FAILED:
            if look.request_hash != opening.request_hash:
                return KeyConflict()
            if state == CallState.BATCHED:
                return Collected()
            if look.answer is None:
                return MadeElsewhere()
            calls.count_replay(connection, run_id, call_key)
            return Stored(unpack(look.answer))
        reused = self._reused(connection, opening, new=state is None)
        if reused is not None:
            return reused
        if opening.batched is not None and (error := batch_queries.unanswered(connection, run_id, call_key)) is not None:
            return Unanswered(error)
        no_room = self._no_room(connection, run_id, opening.worst_nano_usd, opening.budget_nano_usd, opening.day_caps)
        if no_room is not None:
            return no_room
        reserved = {
            "request_hash": opening.request_hash,
            "state": CallState.RESERVED,
            "reserved_usd": usd(opening.worst_nano_usd),
            "question_key": opening.question_key,
            "error": None,
            "payer": opening.payer.kind.value,
            "payer_name": opening.payer.name,
            "judge_model_id": opening.judge_model_id,
        }
        if opening.batched is not None:
            return self._collect(connection, opening, opening.batched, reserved, new=state is None)
        if state is None:
            reserved |= {"provider": opening.provider, "model": opening.model, "created_at": self._clock.now()}
            if opening.sent:
                reserved |= {"state": CallState.SENT, "tries": 1}
            calls.add(connection, run_id=run_id, call_key=call_key, **reserved)
        else:
            calls.change(connection, run_id, call_key, **reserved)
            if opening.sent:
                calls.mark_sent(connection, run_id, call_key)
        calls.add_flight(connection, run_id, call_key, self._owner, self._believed_until())
        self._live.add((run_id, call_key))
        return Reservation()

    def _collect(
        self, connection: Plain, opening: Opening, batched: BatchedRequest, reserved: dict[str, Any], *, new: bool
    ) -> Collected:
        """Record the call with its request. It is in no flight: no process makes it, and none takes it over."""
        run_id, call_key, now = opening.run_id, opening.call_key, self._clock.now()
        reserved |= {"state": CallState.BATCHED}
        if new:
            reserved |= {"provider": opening.provider, "model": opening.model, "created_at": now}
            calls.add(connection, run_id=run_id, call_key=call_key, **reserved)
        else:
            calls.change(connection, run_id, call_key, **reserved)
        batch_queries.collect(
            connection,
            run_id,
            call_key,
            opening.worst_nano_usd,
            lot=batched.lot,
            body=compress_quickly(batched.body),
            size_bytes=len(batched.body),
            created_at=now,
        )
        return Collected()

    def _reused(self, connection: Plain, opening: Opening, *, new: bool) -> Stored | None:
        """Reuse another run's answer and record it as this call's own."""
        if opening.reuse_since is None or opening.question_key is None:
            return None
        run_id, call_key, now = opening.run_id, opening.call_key, self._clock.now()
        reusable = calls.reusable(connection, run_id, call_key, opening.question_key, opening.reuse_since)
        if reusable is None:
            return None
        settlement = replace(unpack(reusable.answer), cost_nano_usd=0, tries=0, queue_s=0.0, provider_s=0.0)
        settlement = replace(settlement, priced=True, cache_saving_nano_usd=0)
        values = {
            **_settled(settlement, now),
            "request_hash": opening.request_hash,
            "question_key": opening.question_key,
            "source": Source.CACHED,
            "payer": NOBODY,
            "judge_model_id": opening.judge_model_id,
            "from_run": reusable.run_id,
            "from_key": reusable.call_key,
        }
        if new:
            values |= {"provider": opening.provider, "model": opening.model, "created_at": now}
            calls.add(connection, run_id=run_id, call_key=call_key, **values)
        else:
            calls.change(connection, run_id, call_key, **values)
        return Stored(settlement, Source.CACHED)

    def _abandoned(self, connection: Plain, flights: list[tuple[str, str]]) -> Recovery:
        """Clean up after a dead process: free the calls that were not sent, count the others as lost."""
        unsent = lost = 0
        for run_id, call_key in flights:
            call = calls.under_way(connection, run_id, call_key)
            sent = call is not None and call.state == CallState.SENT
            if self._give_up(connection, run_id, call_key, STOPPED, lost=sent):
                unsent, lost = unsent + (not sent), lost + sent
        return Recovery(unsent, lost)

    def _give_up(self, connection: Plain, run_id: str, call_key: str, error: str, *, lost: bool, **times: float) -> bool:
        """End a call without an answer; False if it has already ended."""
        calls.remove_flight(connection, run_id, call_key)
        call = calls.under_way(connection, run_id, call_key)
        if call is None or call.state not in (CallState.RESERVED, CallState.SENT):
            return False
        if lost:
            spending_queries.record_loss(connection, run_id, call_key, call.reserved_usd, error, self._clock.now())
        calls.change(connection, run_id, call_key, state=CallState.FAILED, reserved_usd=0.0, error=error, **times)
        return True

    def _no_room(
        self, connection: Plain, run_id: str, more_nano_usd: int, budget_nano_usd: int | None, day_caps: tuple[DayCap, ...]
    ) -> NoRoom | None:
        if budget_nano_usd is not None:
            money = spending_queries.money(connection, run_id)
            spent, reserved = _nano_usd(money.settled_usd + money.lost_usd), _nano_usd(money.reserved_usd)
            if spent + reserved + more_nano_usd > budget_nano_usd:
                return NoRoom(spent, reserved, batched_nano_usd=money.batched_nano_usd)
        for cap in day_caps:
            holder = (cap.workspace_id, cap.user_id)
            spent = _nano_usd(spending_queries.spent(connection, self._clock.now(), *holder))
            reserved = _nano_usd(spending_queries.reserved(connection, *holder))
            if spent + reserved + more_nano_usd > cap.nano_usd:
                batched = spending_queries.money(connection, run_id).batched_nano_usd
                return NoRoom(spent, reserved, cap, batched)
        return None

    def _believed_until(self) -> datetime:
        return self._clock.now() + timedelta(seconds=BELIEVED_S)

    async def _write(self, work: Callable[[Plain], T], *, synced: bool = True) -> T:
        try:
            return await self._db.write_plain(work, synced=synced)
        except DatabaseUnavailable as error:
            raise LedgerUnavailable(str(error)) from error


def settle_within(connection: Plain, run_id: str, call_key: str, settlement: Settlement, now: datetime) -> None:
    """Store an answer within the caller's transaction; does nothing if it is stored already."""
    values = _settled(settlement, now)
    cost_usd, usage = values["cost_usd"], settlement.usage
    if not calls.settle(connection, run_id, call_key, **values):
        return  # an earlier write succeeded, but its confirmation was lost
    calls.remove_flight(connection, run_id, call_key)
    if settlement.cost_nano_usd:
        spending_queries.charge(connection, run_id, call_key, cost_usd)
    unpriced = 0 if settlement.priced else 1
    if unpriced:
        spending_queries.count_unpriced(connection, run_id)
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    spending_queries.book(
        connection, run_id, call_key, now, calls=1, settled_usd=cost_usd, unpriced_calls=unpriced, **tokens
    )


def _settled(settlement: Settlement, now: datetime) -> dict[str, Any]:
    """The columns of an answered call."""
    usage = settlement.usage
    return {
        "state": CallState.SETTLED,
        "reserved_usd": 0.0,
        "cost_usd": usd(settlement.cost_nano_usd),
        "priced": settlement.priced,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "cache_saving_usd": usd(settlement.cache_saving_nano_usd),
        "reasoning_tokens": usage.reasoning_tokens,
        "queue_s": settlement.queue_s,
        "provider_s": settlement.provider_s,
        "finish_reason": settlement.finish,
        "error": None,
        "answer": pack(settlement),
        "settled_at": now,
    }


def _lock(connection: Plain, run_id: str, day_caps: tuple[DayCap, ...]) -> None:
    """Serialise calls that share a budget. Everybody takes the locks in the same order."""
    for cap in sorted(day_caps, key=lambda cap: (cap.workspace_id or 0, cap.user_id or 0)):
        calls.lock_run(connection, f"the budget of the day {cap.workspace_id} {cap.user_id}")
    calls.lock_run(connection, run_id)


def _nano_usd(amount_usd: float) -> int:
    return round(amount_usd * NANO_USD_PER_USD)


FORMAT = 1


def pack(settlement: Settlement) -> bytes:
    data = {"format": FORMAT, **vars(settlement), "usage": vars(settlement.usage)}
    return compress_quickly(json.dumps(data).encode())


def unpack(packed: bytes) -> Settlement:
    data = json.loads(decompress(packed))
    if data.pop("format") != FORMAT:
        raise ValueError("the stored answer has a format that this version does not know")
    usage, finish, protocol = TokenUsage(**data.pop("usage")), Finish(data.pop("finish")), Protocol(data.pop("protocol"))
    return Settlement(usage=usage, finish=finish, protocol=protocol, **data)
