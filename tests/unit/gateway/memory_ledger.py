"""A ledger in memory with the rules of the database's, for tests in virtual time: threads do not wait in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.gateway.calls import DayCap, Settlement, Source
from orchestrator.gateway.ledger.ledger import (
    CallState,
    Failure,
    KeyConflict,
    MadeElsewhere,
    NoRoom,
    Opened,
    Opening,
    Recovery,
    Reservation,
    Spending,
    Stored,
)
from orchestrator.gateway.upstream.secrets.credentials import Payer


@dataclass
class Row:
    request_hash: str
    state: CallState
    reserved_nano_usd: int
    lost_nano_usd: int = 0
    lost_sends: int = 0
    sends: int = 0
    replays: int = 0
    settlement: Settlement | None = None
    error: str | None = None
    question_key: str | None = None
    taken_from: tuple[str, str] | None = None
    payer: Payer | None = None
    holders: frozenset[tuple[int | None, int | None]] = frozenset()

    def lose(self) -> None:
        self.lost_nano_usd += self.reserved_nano_usd
        self.lost_sends += 1

    def give_up(self, error: str) -> None:
        self.state, self.reserved_nano_usd, self.error = CallState.FAILED, 0, error


class MemoryLedger:
    """`rows` may be handed on to a successor, as a database would be."""

    def __init__(self, rows: dict[tuple[str, str], Row] | None = None) -> None:
        self.rows: dict[tuple[str, str], Row] = {} if rows is None else rows

    async def recover(self) -> Recovery:
        unsent = [row for row in self.rows.values() if row.state is CallState.RESERVED]
        lost = [row for row in self.rows.values() if row.state is CallState.SENT]
        for row in lost:
            row.lose()
        for row in (*unsent, *lost):
            row.give_up("the orchestrator stopped")
        return Recovery(len(unsent), len(lost))

    async def beat(self) -> Recovery:
        return Recovery(0, 0)

    async def open(self, opening: Opening) -> Opened:
        key = (opening.run_id, opening.call_key)
        row = self.rows.get(key)
        if row is not None and row.state is not CallState.FAILED:
            if row.request_hash != opening.request_hash:
                return KeyConflict()
            if row.settlement is None:
                return MadeElsewhere()
            row.replays += 1
            return Stored(row.settlement)
        if (reused := self._reused(opening)) is not None:
            self.rows[key] = reused
            assert reused.settlement is not None
            return Stored(reused.settlement, Source.CACHED)
        no_room = self._no_room(opening.run_id, opening.worst_nano_usd, opening.budget_nano_usd, opening.day_caps)
        if no_room is not None:
            return no_room
        if row is None:
            row = self.rows[key] = Row(opening.request_hash, CallState.RESERVED, 0)
        row.request_hash, row.question_key, row.error = opening.request_hash, opening.question_key, None
        row.state, row.sends = (CallState.SENT, row.sends + 1) if opening.sent else (CallState.RESERVED, row.sends)
        row.reserved_nano_usd, row.payer, row.holders = opening.worst_nano_usd, opening.payer, _holders(opening.day_caps)
        return Reservation()

    async def sent(self, run_id: str, call_key: str) -> None:
        row = self.rows[run_id, call_key]
        row.state, row.sends = CallState.SENT, row.sends + 1

    async def refused(self, run_id: str, call_key: str) -> None:
        self.rows[run_id, call_key].state = CallState.RESERVED

    async def again(
        self, run_id: str, call_key: str, budget_nano_usd: int | None, day_caps: tuple[DayCap, ...] = ()
    ) -> bool:
        row = self.rows[run_id, call_key]
        if self._no_room(run_id, row.reserved_nano_usd, budget_nano_usd, day_caps) is not None:
            return False
        row.lose()
        return True

    async def settle(self, run_id: str, call_key: str, settlement: Settlement) -> None:
        row = self.rows[run_id, call_key]
        row.state, row.reserved_nano_usd, row.settlement = CallState.SETTLED, 0, settlement

    async def fail(self, run_id: str, call_key: str, failure: Failure) -> None:
        row = self.rows[run_id, call_key]
        if failure.lost:
            row.lose()
        row.give_up(failure.error)

    def released(self, run_id: str, call_key: str) -> None:
        """Memory can always be written."""

    async def spending(self, run_id: str) -> Spending:
        rows = [row for (run, _), row in self.rows.items() if run == run_id]
        return Spending(
            settled_nano_usd=sum(row.settlement.cost_nano_usd for row in rows if row.settlement),
            lost_nano_usd=sum(row.lost_nano_usd for row in rows),
            reserved_nano_usd=sum(row.reserved_nano_usd for row in rows),
            lost_sends=sum(row.lost_sends for row in rows),
        )

    def _reused(self, opening: Opening) -> Row | None:
        """A process is not thought to live for longer than answers may be used again."""
        if opening.reuse_since is None or opening.question_key is None:
            return None
        used = {row.taken_from for (run, _), row in self.rows.items() if run == opening.run_id}
        found = [
            (call_key != opening.call_key, (run, call_key), row.settlement)
            for (run, call_key), row in self.rows.items()
            if row.settlement is not None
            and row.taken_from is None
            and row.question_key == opening.question_key
            and run != opening.run_id
            and (run, call_key) not in used
        ]
        if not found:
            return None
        _, source, settlement = min(found, key=lambda each: each[0])
        free = replace(settlement, cost_nano_usd=0, tries=0, queue_s=0.0, provider_s=0.0, priced=True)
        return Row(
            opening.request_hash, CallState.SETTLED, 0, settlement=free, question_key=opening.question_key, taken_from=source
        )

    def _no_room(
        self, run_id: str, more_nano_usd: int, budget_nano_usd: int | None, day_caps: tuple[DayCap, ...]
    ) -> NoRoom | None:
        """A process is not thought to live for more than a day."""
        caps: list[tuple[int, DayCap | None]] = [(cap.nano_usd, cap) for cap in day_caps]
        for budget, cap in [*([] if budget_nano_usd is None else [(budget_nano_usd, None)]), *caps]:
            rows = [row for (run, _), row in self.rows.items() if (run == run_id if cap is None else _counts(row, cap))]
            spent = sum(row.lost_nano_usd + (row.settlement.cost_nano_usd if row.settlement else 0) for row in rows)
            reserved = sum(row.reserved_nano_usd for row in rows)
            if spent + reserved + more_nano_usd > budget:
                return NoRoom(spent, reserved, cap)
        return None


def _holders(caps: tuple[DayCap, ...]) -> frozenset[tuple[int | None, int | None]]:
    return frozenset((cap.workspace_id, cap.user_id) for cap in caps)


def _counts(row: Row, cap: DayCap) -> bool:
    return cap.workspace_id is None or (cap.workspace_id, cap.user_id) in row.holders
