"""Checks whether a run could be started now: database, engine, runner network, listener, disk and background loops, each
with a sentence. Results are cached for a second for all callers, since no token is needed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.runs import queries as run_queries
from orchestrator.runs.scheduling.fleet import Fleet
from orchestrator.runs.scheduling.loops import Loops
from orchestrator.serving.gateway_processes import GatewayProcesses
from orchestrator.serving.runner_listener import RunnerListener
from orchestrator.system.clock import Clock

STALE_TICK_S = 60.0
SHARED_S = 1.0
WELL = {
    "database": "It answers.",
    "engine": "It answers.",
    "network": "Runners have a network.",
    "runners": "Runners reach this service.",
    "disk": "There is room.",
    "loops": "They go round.",
}


@dataclass(frozen=True)
class Part:
    name: str
    ok: bool
    sentence: str


class Readiness:
    def __init__(
        self, db: Database, fleet: Fleet, door: RunnerListener, loops: Loops, clock: Clock, gateways: GatewayProcesses
    ) -> None:
        self._db = db
        self._fleet = fleet
        self._door = door
        self._loops = loops
        self._clock = clock
        self._gateways = gateways
        self._looking = asyncio.Lock()
        self._seen: tuple[float, list[Part]] | None = None

    async def look(self) -> list[Part]:
        async with self._looking:
            now_s = asyncio.get_running_loop().time()
            if self._seen is None or now_s - self._seen[0] > SHARED_S:
                troubles = await self._troubles()
                parts = [Part(name, name not in troubles, troubles.get(name, well)) for name, well in WELL.items()]
                self._seen = (asyncio.get_running_loop().time(), parts)
            return self._seen[1]

    async def _troubles(self) -> dict[str, str]:
        troubles = await self._fleet.troubles()
        try:
            await self._db.read(run_queries.answers)
        except DatabaseUnavailable as error:
            troubles["database"] = str(error)
        if not self._door.is_open:
            troubles["runners"] = self._door.error or "Their address is not open yet."
        elif (missing := self._gateways.trouble) is not None:
            troubles["runners"] = missing
        age_s = self._clock.monotonic() - self._loops.last_tick
        if age_s > STALE_TICK_S:
            troubles["loops"] = f"The last round was {age_s:.0f} s ago; the log says what holds them up."
        return troubles
