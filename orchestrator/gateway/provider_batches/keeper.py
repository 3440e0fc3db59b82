"""Keeps provider batches going: places collected calls in parts, has each part carried forward, and lets runs go on.

Everything it knows is in the database, so that it can stop anywhere. Only the leader does this. No error ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.gateway.provider_batches import queries
from orchestrator.gateway.provider_batches.lots import PartProgress, PartState, sentence
from orchestrator.gateway.provider_batches.part_steps import PartSteps
from orchestrator.gateway.provider_batches.tables import BatchPart
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import Resumed, Status
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.transitions import advance
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import uuid7

ROUND_S = 1.0
RELEASED_AT_ONCE = 500
NO_ROOM_PAUSE = timedelta(seconds=60)
"""How long a run waits that could place no call, because a budget has no room now."""

log = structlog.get_logger()


@dataclass(frozen=True)
class PartLimits:
    """How much one batch may hold."""

    calls: int
    size_bytes: int


class BatchKeeper:
    def __init__(
        self,
        db: Database,
        leadership: Leadership,
        clock: Clock,
        steps: PartSteps,
        limits: PartLimits,
        *,
        wake: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._db, self._leadership, self._clock, self._steps = db, leadership, clock, steps
        self._limits, self._wake, self._sleep = limits, wake, sleep
        self._working: dict[str, asyncio.Task[None]] = {}

    async def keep_on(self) -> None:
        """Runs until cancelled."""
        try:
            while True:
                try:
                    await self.round()
                except (DatabaseUnavailable, LeadershipLost) as error:
                    log.warning("round of batches given up", action="batch_round_failed", error=str(error))
                except Exception:
                    log.exception("round of batches failed", action="batch_round_crashed")
                await self._sleep(ROUND_S)
        finally:
            for task in self._working.values():
                task.cancel()

    async def round(self) -> None:
        if self._leadership.epoch is None:
            return
        now = self._clock.now()
        runs = await self._db.read(queries.waiting_runs)
        for run in runs:
            while await self._leadership.write(lambda session, run=run: self._place(session, run, now)):  # type: ignore[misc]
                pass
        for part in await self._db.read(lambda session: queries.open_parts(session, now)):
            if part.id not in self._working:
                self._start(part)
        for run in runs:
            resumed = await self._leadership.write(lambda session, run=run: _follow(session, run.id, now))  # type: ignore[misc]
            if resumed:
                self._wake()
        while await self._leadership.write(lambda session: _clean_up(session, now)) == RELEASED_AT_ONCE:
            pass

    def _place(self, session: Session, run: ContainerRun, now: datetime) -> bool:
        """Make one part of the run's collected calls; False if there are none."""
        for lot in queries.lots_of(session, run.id):
            keys: list[str] = []
            size = 0
            for key, size_bytes in queries.collected(session, run.id, lot, self._limits.calls):
                size += size_bytes
                if keys and size > self._limits.size_bytes:
                    break
                keys.append(key)
            part = BatchPart(
                id=uuid7(now),
                run_id=run.id,
                lot=lot,
                state=PartState.PREPARED.value,
                calls=len(keys),
                created_at=now,
                next_look_at=now,
            )
            queries.place(session, part, keys)
            log.info("batch prepared", action="batch_prepared", run_id=run.id, part=part.id, calls=len(keys))
            return True
        return False

    def _start(self, part: BatchPart) -> None:
        task = asyncio.create_task(self._steps.carry_forward(part), name=f"batch {part.id}")
        self._working[part.id] = task

        def ended(finished: asyncio.Task[None]) -> None:
            self._working.pop(part.id, None)
            if finished.cancelled() or (error := finished.exception()) is None:
                return
            if isinstance(error, DatabaseUnavailable | LeadershipLost):
                log.warning("batch left for later", action="batch_left", part=part.id, error=str(error))
            else:
                log.error("batch step failed", action="batch_crashed", part=part.id, exc_info=error)

        task.add_done_callback(ended)


def _clean_up(session: Session, now: datetime) -> int:
    queries.hurry(session, now)
    return queries.release_collected(session, RELEASED_AT_ONCE, "the run ended before the call was submitted")


def _follow(session: Session, run_id: str, now: datetime) -> bool:
    """Let the run go on if nothing of it is at a provider, else say how far its batches are."""
    run = run_queries.lock(session, run_id)
    if run is None or run.status != Status.PENDING or run.waiting_since is None:
        return False
    parts = queries.parts_since(session, run_id, run.waiting_since)
    if not queries.waits(session, run_id):
        if run.not_before is not None and run.not_before <= now + NO_ROOM_PAUSE:
            return False  # it may go on already
        advance(session, run, Resumed(now, now if parts else now + NO_ROOM_PAUSE), now)
        run.waiting_for = None if parts else "room in the budget"
        session.add(run)
        return True
    words = sentence([_progress(part, now) for part in parts]) if parts else None
    if words is not None and words != run.waiting_for:
        run.waiting_for = words
        session.add(run)
        event_queries.append(session, "heartbeat", now, run_id=run_id, attempt=run.attempt, data={"waiting_for": words})
    return False


def _progress(part: BatchPart, now: datetime) -> PartProgress:
    submitted = part.state in (PartState.SUBMITTED, PartState.ENDED)
    left_s = None if part.expires_at is None else (part.expires_at - now).total_seconds()
    back = part.answered + part.failed
    return PartProgress(submitted, part.calls, back, None if part.state == PartState.ENDED else left_s)
