"""The periodic clock, and the only module that imports APScheduler. It decides when to check, never what is due.

APScheduler plans its next tick by the wall clock: it would sleep for a day if the clock is set back by one, and count 86,400
missed ticks if it is set forward. So a planned tick that is not near the present is moved there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from orchestrator.db.session import DatabaseUnavailable
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost

log = structlog.get_logger()

MORE_ROUNDS = 200
"""Maximum number of rounds in one tick; the rest follows with the next tick."""

Round = Callable[[], Awaitable[bool]]
"""Does the work that is due; returns whether another round should follow at once."""


class Ticker:
    """Runs each kind of work once per tick, each in its own task, so that a slow one does not delay the others."""

    def __init__(self, works: dict[str, Round], interval_s: float = 1.0) -> None:
        self._works = works
        self._interval_s = interval_s
        self._ticked = {name: asyncio.Event() for name in works}
        self._scheduler = _SteadyScheduler(timezone=UTC)
        self._scheduler.interval = timedelta(seconds=interval_s)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._work(name)) for name in self._works]
        self._scheduler.add_job(
            self.tick,
            "interval",
            seconds=self._interval_s,
            coalesce=True,
            misfire_grace_time=None,
            next_run_time=datetime.now(UTC),
        )
        self._scheduler.start()

    async def tick(self) -> None:
        for event in self._ticked.values():
            event.set()

    async def close(self) -> None:
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await asyncio.sleep(0)  # APScheduler ends in the next iteration of the event loop

    async def _work(self, name: str) -> None:
        ticked, work = self._ticked[name], self._works[name]
        while True:
            await ticked.wait()
            ticked.clear()
            try:
                for _ in range(MORE_ROUNDS):
                    if not await work():
                        break
            except (DatabaseUnavailable, LeadershipLost) as error:
                log.warning("tick given up", action="tick_failed", work=name, error=str(error))
            except Exception:
                log.exception("tick failed", action="tick_crashed", work=name)


class _SteadyScheduler(AsyncIOScheduler):  # type: ignore[misc]
    """Ticks once per interval, even if the wall clock changes."""

    interval = timedelta(seconds=1)

    def _process_jobs(self) -> float | None:
        now = datetime.now(UTC)
        for job in self.get_jobs():
            if abs(job.next_run_time - now) > 2 * self.interval:
                job.modify(next_run_time=now)
        wait: float | None = super()._process_jobs()
        return None if wait is None else min(wait, self.interval.total_seconds())
