"""The loop shared by run and batch archives: endless rounds, retries, and removal of expired archives."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from datetime import datetime, timedelta

import structlog

from orchestrator.archives import queries
from orchestrator.archives.retention import RetentionPolicy
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.system.clock import Clock

log = structlog.get_logger()

ROUND_S = 1.0
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 900.0
SWEEP_S = 60.0


class ArchiveRounds(ABC):
    def __init__(
        self, db: Database, leadership: Leadership, clock: Clock, policy: RetentionPolicy, rng: random.Random
    ) -> None:
        self._db, self._leadership, self._clock, self._policy, self._rng = db, leadership, clock, policy, rng
        self._swept: float | None = None

    async def run(self) -> None:
        """Runs for ever; errors do not end it."""
        while True:
            busy = False
            try:
                busy = await self.round()
            except (DatabaseUnavailable, LeadershipLost) as error:
                log.warning("archives given up for now", action="archives_failed", error=str(error))
            except Exception:
                log.exception("archives failed", action="archives_crashed")
            await asyncio.sleep(0 if busy else ROUND_S)

    async def round(self) -> bool:
        """Returns whether there may be more to do at once."""
        if self._leadership.epoch is None:
            return False
        monotonic = self._clock.monotonic()
        if self._swept is None or monotonic - self._swept > SWEEP_S:
            self._swept = monotonic
            await self._sweep()
        return await self._store_due(self._clock.now())

    @abstractmethod
    async def _store_due(self, now: datetime) -> bool:
        """Makes and stores archives that are due; returns whether there may be more."""

    @abstractmethod
    async def _sweep(self) -> None:
        """Removes expired archives: first the object, then the row is updated."""

    async def _expired(self, kind: str) -> list[str]:
        """Ids of the runs or batches whose archives have expired."""
        expired = self._policy.expired(await self._db.read(queries.stored), self._clock.now())
        return [owner for owner_kind, owner in expired if owner_kind == kind]

    def _next_try(self, tries: int) -> datetime:
        seconds = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(tries - 1, 20))
        return self._clock.now() + timedelta(seconds=seconds * self._rng.uniform(0.8, 1.2))
