"""Warm hand-off: the request of a waiting runner is held until there is a run for it.

Usually the orchestrator that assigns the run also holds the runner's request. Then the run is claimed in the transaction
that assigns it, and the response is sent at once. Otherwise, or if that response is lost, the rows tell which run was
assigned.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import Unauthorized
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.service import Claim, Intake, Superseded
from orchestrator.runs.reports.machine_cost import GIB
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.runs.warm_pool.tables import WarmRunner
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, token_hash
from runner.contract.run_spec import IdleReading

HOLD_S = 20.0
LOOK_S = 1.0
"""Poll interval: another orchestrator, which cannot wake this one, may have assigned a run."""


@dataclass(frozen=True)
class WarmClaim:
    """A run for a warm runner, with a token that is valid for this run only."""

    claim: Claim
    token: str


class _HeldRequest:
    """The held request of a waiting runner."""

    def __init__(self) -> None:
        self.wake_up = asyncio.Event()
        self.warm_claim: WarmClaim | None = None


class WarmHandOff:
    def __init__(self, db: Database, clock: Clock, intake: Intake, *, came_up: Callable[[str], None]) -> None:
        self._db = db
        self._clock = clock
        self._intake = intake
        self._came_up = came_up
        self._held: dict[str, _HeldRequest] = {}

    def claimed(
        self, session: Session, ready: WarmRunner, run: ContainerRun, attempt: Attempt, token: str, now: datetime
    ) -> WarmClaim | None:
        """Claim `run` for `ready` in the assigning transaction; None if its request is not held here. `deliver` it then."""
        if ready.token_hash not in self._held or ready.runner_id is None:
            return None
        return WarmClaim(self._intake.taken_up(session, run, attempt, ready.runner_id, now), token)

    def deliver(self, digest: str, warm_claim: WarmClaim | None) -> None:
        """After the commit: answer the held request, or make it check the rows."""
        if (held := self._held.get(digest)) is not None:
            held.warm_claim = warm_claim
            held.wake_up.set()

    async def knows(self, token: str) -> bool:
        """Whether this is the token of a warm runner."""
        return await self._db.read(lambda session: pool_queries.by_token(session, token_hash(token))) is not None

    async def answer(
        self, token: str, runner_id: str, hold_s: float = HOLD_S, reading: IdleReading | None = None
    ) -> WarmClaim | None:
        """Waits for the run assigned to this runner and returns it; None if the runner must ask again.

        A runner that asks again after a lost response gets the same run with a new token. Raises `Unauthorized` if the token
        is not of the pool.
        """
        digest = token_hash(token)
        until = self._clock.monotonic() + hold_s
        held = self._held[digest] = _HeldRequest()  # before the first check, so that no wake-up is missed
        try:
            warm_claim = await self._db.write(lambda session: self._look(session, digest, runner_id, reading))
            while warm_claim is None and (left := until - self._clock.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, LOOK_S)):
                        await held.wake_up.wait()
                if held.warm_claim is not None:
                    return held.warm_claim
                if held.wake_up.is_set() or await self._db.read(lambda session: self._is_given(session, digest)):
                    held.wake_up.clear()
                    warm_claim = await self._db.write(lambda session: self._look(session, digest, runner_id))
        finally:
            if self._held.get(digest) is held:
                del self._held[digest]
        return warm_claim

    def _look(self, session: Session, digest: str, runner_id: str, reading: IdleReading | None = None) -> WarmClaim | None:
        now = self._clock.now()
        row = self._row(session, digest)
        if row.runner_id not in (None, runner_id):
            raise Superseded("another runner has used this token; this one must stop")
        if row.run_id is None or row.attempt is None:
            if row.ready_at is None:
                self._came_up(row.instance_type)
            count_idle_time(session, row, now, reading)
            row.runner_id, row.seen_at, row.ready_at = runner_id, now, row.ready_at or now
            session.add(row)
            return None
        attempt = run_queries.lock_attempt(session, row.run_id, row.attempt)
        if attempt is None or attempt.token_hash is None:
            raise Superseded(f"attempt {row.attempt} of run {row.run_id} is over; this runner must stop")
        token = new_token()
        attempt.token_hash = token_hash(token)
        session.add(attempt)
        return WarmClaim(self._intake.claim_within(session, row.run_id, row.attempt, runner_id, now), token)

    def _is_given(self, session: Session, digest: str) -> bool:
        return self._row(session, digest).run_id is not None

    def _row(self, session: Session, digest: str) -> WarmRunner:
        row = pool_queries.by_token(session, digest)
        if row is None or (row.retired is not None and row.run_id is None):
            raise Unauthorized("This runner's token is not valid (any more): it must stop.")
        return row


LONGEST_GAP_S = 120.0
"""A warm runner asks every 20 seconds. Of a longer silence, only this much counts as idle time."""


def count_idle_time(session: Session, row: WarmRunner, now: datetime, reading: IdleReading | None = None) -> None:
    """Count the idle time since the row was last counted. Without a reading, memory use is assumed unchanged."""
    seconds = min(max(0.0, (now - (row.seen_at or row.created_at)).total_seconds()), LONGEST_GAP_S)
    before, vcpu_s = row.memory_bytes, 0.0
    if reading is not None:
        vcpu_s = max(0.0, reading.cpu_s - row.cpu_s)
        row.cpu_s, row.memory_bytes = max(row.cpu_s, reading.cpu_s), reading.memory_bytes
    gib_s = seconds * (before + row.memory_bytes) / 2 / GIB
    if seconds or vcpu_s:
        pool_queries.add_idle(session, now, row.instance_type, ready_s=seconds, vcpu_s=vcpu_s, gib_s=gib_s)
