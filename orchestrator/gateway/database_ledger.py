"""The ledger in the database: the rules of `ledger`, written with the statements of `db.call_queries`.

Every process has a name that it keeps over restarts. A call under way has a flight with its owner's name and a time until
which it is believed; `beat` extends it. So a process that comes back knows at once which calls its earlier life left, and
other processes take over after the time has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from sqlmodel import Session

from orchestrator.clock import Clock
from orchestrator.db import call_queries as calls
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.db.tables import GatewayCall
from orchestrator.gateway.calls import Settlement
from orchestrator.gateway.ledger import (
    CallState,
    Failure,
    InFlight,
    KeyTaken,
    LedgerUnavailable,
    NoRoom,
    NotRunning,
    Opened,
    Opening,
    Recovered,
    Reserved,
    Spending,
    Stored,
)
from orchestrator.gateway.prices import NUSD_PER_USD, usd
from orchestrator.gateway.stored_answer import pack, unpack

BELIEVED_S = 60.0
STOPPED = "the orchestrator stopped"

T = TypeVar("T")


class DatabaseLedger:
    def __init__(self, db: Database, clock: Clock, owner: str) -> None:
        self._db = db
        self._clock = clock
        self._owner = owner
        self._live: set[tuple[str, str]] = set()

    async def recover(self) -> Recovered:
        def work(session: Session) -> Recovered:
            return self._abandoned(session, calls.flights_of(session, self._owner))

        return await self._write(work)

    async def beat(self) -> Recovered:
        def work(session: Session) -> Recovered:
            calls.extend(session, self._owner, self._believed_until())
            return self._abandoned(session, calls.flights_overdue(session, self._clock.now()))

        return await self._write(work)

    async def open(self, opening: Opening) -> Opened:
        try:
            return await self._write(lambda session: self._open(session, opening))
        except LedgerUnavailable:
            self.released(opening.run_id, opening.call_key)
            raise

    async def sent(self, run_id: str, call_key: str) -> None:
        await self._write(lambda session: calls.mark_sent(session, run_id, call_key))

    async def refused(self, run_id: str, call_key: str) -> None:
        await self._write(lambda session: calls.change(session, run_id, call_key, state=CallState.RESERVED))

    async def again(self, run_id: str, call_key: str, budget_nusd: int | None, day_budget_nusd: int | None = None) -> bool:
        def work(session: Session) -> bool:
            _lock(session, run_id, day_budget_nusd)
            row = _row(session, run_id, call_key)
            if self._no_room(session, run_id, _nusd(row.reserved_usd), budget_nusd, day_budget_nusd) is not None:
                return False
            calls.lose(session, row, "a try failed after it was sent", self._clock.now())
            return True

        return await self._write(work)

    async def settle(self, run_id: str, call_key: str, settlement: Settlement) -> None:
        usage, answer = settlement.usage, pack(settlement)

        def work(session: Session) -> None:
            calls.change(
                session,
                run_id,
                call_key,
                state=CallState.SETTLED,
                reserved_usd=0.0,
                cost_usd=usd(settlement.cost_nusd),
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=usage.cached_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                queue_s=settlement.queue_s,
                provider_s=settlement.provider_s,
                finish_reason=settlement.finish,
                error=None,
                answer=answer,
                settled_at=self._clock.now(),
            )
            calls.land(session, run_id, call_key)
            cost_usd = usd(settlement.cost_nusd)
            if settlement.cost_nusd:
                calls.charge(session, run_id, cost_usd)
            tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            calls.book(session, run_id, self._clock.now(), calls=1, settled_usd=cost_usd, **tokens)

        await self._write(work)

    async def fail(self, run_id: str, call_key: str, failure: Failure) -> None:
        def work(session: Session) -> None:
            row = _row(session, run_id, call_key)
            row.queue_s, row.provider_s = failure.queue_s, failure.provider_s
            self._give_up(session, row, failure.error, lost=failure.lost)

        await self._write(work)

    def released(self, run_id: str, call_key: str) -> None:
        self._live.discard((run_id, call_key))

    async def spending(self, run_id: str) -> Spending:
        try:
            money = await self._db.read(lambda session: calls.money(session, run_id))
        except DatabaseUnavailable as error:
            raise LedgerUnavailable(str(error)) from error
        return Spending(_nusd(money.settled_usd), _nusd(money.lost_usd), _nusd(money.reserved_usd), money.lost_sends)

    def _open(self, session: Session, opening: Opening) -> Opened:
        run_id, call_key = opening.run_id, opening.call_key
        _lock(session, run_id, opening.day_budget_nusd)
        seen = calls.look(session, run_id, call_key, opening.attempt)
        if not seen.runs:
            return NotRunning()
        state = seen.state
        if state in (CallState.RESERVED, CallState.SENT):
            flight = calls.flight(session, run_id, call_key)
            dropped = flight is not None and flight.owner == self._owner and (run_id, call_key) not in self._live
            if flight is None or dropped or flight.until < self._clock.now():
                self._abandoned(session, [(run_id, call_key)])
                state = CallState.FAILED
        if state is not None and state != CallState.FAILED:
            if seen.request_hash != opening.request_hash:
                return KeyTaken()
            if seen.answer is None:
                return InFlight()
            calls.replayed(session, run_id, call_key)
            return Stored(unpack(seen.answer))
        no_room = self._no_room(session, run_id, opening.worst_nusd, opening.budget_nusd, opening.day_budget_nusd)
        if no_room is not None:
            return no_room
        reserved = {
            "request_hash": opening.request_hash,
            "state": CallState.RESERVED,
            "reserved_usd": usd(opening.worst_nusd),
            "error": None,
        }
        if state is None:
            reserved |= {"provider": opening.provider, "model": opening.model, "created_at": self._clock.now()}
            if opening.sent:
                reserved |= {"state": CallState.SENT, "tries": 1}
            calls.add(session, run_id=run_id, call_key=call_key, **reserved)
        else:
            calls.change(session, run_id, call_key, **reserved)
            if opening.sent:
                calls.mark_sent(session, run_id, call_key)
        calls.take_off(session, run_id, call_key, self._owner, self._believed_until())
        self._live.add((run_id, call_key))
        return Reserved()

    def _abandoned(self, session: Session, flights: list[tuple[str, str]]) -> Recovered:
        """What a process that is gone left: free what was not sent, count the rest as lost."""
        unsent = lost = 0
        for run_id, call_key in flights:
            row = calls.get(session, run_id, call_key)
            if row is None or row.state not in (CallState.RESERVED, CallState.SENT):
                calls.land(session, run_id, call_key)
                continue
            sent = row.state == CallState.SENT
            unsent, lost = unsent + (not sent), lost + sent
            self._give_up(session, row, STOPPED, lost=sent)
        return Recovered(unsent, lost)

    def _give_up(self, session: Session, row: GatewayCall, error: str, *, lost: bool) -> None:
        if lost:
            calls.lose(session, row, error, self._clock.now())
        row.state, row.reserved_usd, row.error = CallState.FAILED, 0.0, error
        calls.land(session, row.run_id, row.call_key)
        session.flush()

    def _no_room(
        self, session: Session, run_id: str, more_nusd: int, budget_nusd: int | None, day_nusd: int | None
    ) -> NoRoom | None:
        session.flush()
        if budget_nusd is not None:
            money = calls.money(session, run_id)
            spent, reserved = _nusd(money.settled_usd + money.lost_usd), _nusd(money.reserved_usd)
            if spent + reserved + more_nusd > budget_nusd:
                return NoRoom(spent, reserved)
        if day_nusd is not None:
            spent, reserved = _nusd(calls.spent_on(session, self._clock.now())), _nusd(calls.reserved(session))
            if spent + reserved + more_nusd > day_nusd:
                return NoRoom(spent, reserved, of_day=True)
        return None

    def _believed_until(self) -> datetime:
        return self._clock.now() + timedelta(seconds=BELIEVED_S)

    async def _write(self, work: Callable[[Session], T]) -> T:
        try:
            return await self._db.write(work)
        except DatabaseUnavailable as error:
            raise LedgerUnavailable(str(error)) from error


def _row(session: Session, run_id: str, call_key: str) -> GatewayCall:
    row = calls.get(session, run_id, call_key)
    if row is None:
        raise LookupError(f"no call {call_key} of run {run_id} is in the ledger")
    return row


def _lock(session: Session, run_id: str, day_budget_nusd: int | None) -> None:
    """Those who share a budget take turns."""
    if day_budget_nusd is not None:
        calls.lock_run(session, "the budget of the day")
    calls.lock_run(session, run_id)


def _nusd(amount_usd: float) -> int:
    return round(amount_usd * NUSD_PER_USD)
