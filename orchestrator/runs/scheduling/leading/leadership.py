"""The leader lease: one orchestrator at a time dispatches, reconciles and ticks; writes of a former leader are refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.runs.scheduling.leading import lease_queries
from orchestrator.system.clock import Clock

T = TypeVar("T")


class Leadership:
    def __init__(self, db: Database, clock: Clock, holder: str, lease_s: float) -> None:
        self._db = db
        self._clock = clock
        self._holder = holder
        self._lease = timedelta(seconds=lease_s)
        self.epoch: int | None = None

    async def hold(self) -> bool:
        """Take or renew the lease; returns whether we lead now."""
        now, until, renew = self._clock.now(), self._clock.now() + self._lease, self.epoch is not None
        self.epoch = await self._db.write(lambda s: lease_queries.acquire(s, self._holder, now, until, renew=renew))
        return self.epoch is not None

    async def write(self, fn: Callable[[Session], T]) -> T:
        """Execute a write only if we still lead."""
        epoch = self.epoch
        if epoch is None:
            raise lease_queries.LeadershipLost("this orchestrator does not lead")

        def guarded(session: Session) -> T:
            lease_queries.guard(session, epoch)
            return fn(session)

        return await self._db.write(guarded)

    async def release(self) -> None:
        if self.epoch is not None:
            now = self._clock.now()
            await self._db.write(lambda s: lease_queries.release(s, self._holder, now))
            self.epoch = None
