"""The answer to a runner that stands ready: it asks and is held on the line until a run is there for it.

The orchestrator that gives a run away usually holds the runner's line itself: then the run is claimed in the transaction
that gives it, and the answer goes out at once. Otherwise, and if that answer is lost, the rows tell what was given.
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
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.runs.warm_pool import idle
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.runs.warm_pool.tables import WarmRunner
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, token_hash
from runner.contract.run_spec import IdleReading

HOLD_S = 20.0
LOOK_S = 1.0
"""A run may have been given by another orchestrator, which cannot ring here."""


@dataclass(frozen=True)
class Handed:
    """A run for a runner that stood ready, with the token that is valid for this run alone."""

    claim: Claim
    token: str


class _Line:
    """A runner that is being held."""

    def __init__(self) -> None:
        self.bell = asyncio.Event()
        self.handed: Handed | None = None


class HandOver:
    def __init__(self, db: Database, clock: Clock, intake: Intake, *, came_up: Callable[[str], None]) -> None:
        self._db = db
        self._clock = clock
        self._intake = intake
        self._came_up = came_up
        self._lines: dict[str, _Line] = {}

    def claimed(
        self, session: Session, ready: WarmRunner, run: ContainerRun, attempt: Attempt, token: str, now: datetime
    ) -> Handed | None:
        """Within the transaction that gives `run` to `ready`: its claim, if that runner is held here. `deliver` it then."""
        if ready.token_hash not in self._lines or ready.runner_id is None:
            return None
        return Handed(self._intake.taken_up(session, run, attempt, ready.runner_id, now), token)

    def deliver(self, digest: str, handed: Handed | None) -> None:
        """What was given is committed: answer, or have the rows looked at."""
        if (line := self._lines.get(digest)) is not None:
            line.handed = handed
            line.bell.set()

    async def knows(self, token: str) -> bool:
        """Whether this is the token of a warm runner."""
        return await self._db.read(lambda session: pool_queries.by_token(session, token_hash(token))) is not None

    async def answer(
        self, token: str, runner_id: str, hold_s: float = HOLD_S, reading: IdleReading | None = None
    ) -> Handed | None:
        """The run that this runner was given, as soon as there is one; None if it must ask again.

        Whoever asks again after a lost answer is given the same run with a new token. Raises `Unauthorized` for a token
        that is none of the pool's.
        """
        digest = token_hash(token)
        until = self._clock.monotonic() + hold_s
        line = self._lines[digest] = _Line()  # before looking: what comes in between rings
        try:
            handed = await self._db.write(lambda session: self._look(session, digest, runner_id, reading))
            while handed is None and (left := until - self._clock.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, LOOK_S)):
                        await line.bell.wait()
                if line.handed is not None:
                    return line.handed
                if line.bell.is_set() or await self._db.read(lambda session: self._is_given(session, digest)):
                    line.bell.clear()
                    handed = await self._db.write(lambda session: self._look(session, digest, runner_id))
        finally:
            if self._lines.get(digest) is line:
                del self._lines[digest]
        return handed

    def _look(self, session: Session, digest: str, runner_id: str, reading: IdleReading | None = None) -> Handed | None:
        now = self._clock.now()
        row = self._row(session, digest)
        if row.runner_id not in (None, runner_id):
            raise Superseded("another runner has used this token; this one must stop")
        if row.run_id is None or row.attempt is None:
            if row.ready_at is None:
                self._came_up(row.instance_type)
            idle.count(session, row, now, reading)
            row.runner_id, row.seen_at, row.ready_at = runner_id, now, row.ready_at or now
            session.add(row)
            return None
        attempt = run_queries.lock_attempt(session, row.run_id, row.attempt)
        if attempt is None or attempt.token_hash is None:
            raise Superseded(f"attempt {row.attempt} of run {row.run_id} is over; this runner must stop")
        token = new_token()
        attempt.token_hash = token_hash(token)
        session.add(attempt)
        return Handed(self._intake.claim_within(session, row.run_id, row.attempt, runner_id, now), token)

    def _is_given(self, session: Session, digest: str) -> bool:
        return self._row(session, digest).run_id is not None

    def _row(self, session: Session, digest: str) -> WarmRunner:
        row = pool_queries.by_token(session, digest)
        if row is None or (row.retired is not None and row.run_id is None):
            raise Unauthorized("This runner's token is not valid (any more): it must stop.")
        return row
