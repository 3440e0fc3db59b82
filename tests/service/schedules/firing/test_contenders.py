"""Real processes that share one database, killed with SIGKILL at any moment while time runs fast: each instant once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.schedules.firing.rounds import Firing
from tests.manual_clock import START
from tests.service.schedules.simulated_schedules import ScheduleWorld, a_launcher, every_instant_once

pytestmark = pytest.mark.anyio

SPEED = 100
"""Seconds that pass in one."""
LEASE_S = 60


class FastClock:
    def __init__(self, begun: float) -> None:
        self._begun = begun

    def now(self) -> datetime:
        return START + timedelta(seconds=SPEED * (time.monotonic() - self._begun))

    def monotonic(self) -> float:
        return SPEED * (time.monotonic() - self._begun)


def contend(url: str, name: str, begun: float, tmp_path: Path) -> int:
    """Start an orchestrator that leads when it can and fires what is due; its process id."""
    child = os.fork()
    if child:
        return child
    try:
        asyncio.run(_contend(url, name, FastClock(begun), tmp_path))
    finally:
        os._exit(1)


async def _contend(url: str, name: str, clock: FastClock, tmp_path: Path) -> None:
    db = Database(url)
    leadership = Leadership(db, clock, name, LEASE_S)
    firing = Firing(db, leadership, clock, a_launcher(tmp_path), wake=lambda: None)
    while True:
        with contextlib.suppress(LeadershipLost, DatabaseUnavailable):
            if await leadership.hold():
                await firing.round()
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("kills", [4, pytest.param(60, marks=pytest.mark.exhaustive)])
async def test_two_processes_and_deaths_at_any_moment(
    database: Database, world: ScheduleWorld, tmp_path: Path, kills: int
) -> None:
    models = [await world.add(slug, overlap="allow", misfire_grace_s=86400) for slug in ("m1", "m2", "m3")]
    rng, begun = random.Random(kills), time.monotonic()
    alive = [contend(database.url, f"p{number}", begun, tmp_path) for number in range(2)]
    try:
        for number in range(kills):
            await asyncio.sleep(rng.uniform(0.2, 0.6))
            killed = alive.pop(rng.randrange(2))
            os.kill(killed, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(killed, 0)[1]) == -signal.SIGKILL, "it was alive until now"
            alive.append(contend(database.url, f"q{number}", begun, tmp_path))
        async with asyncio.timeout(600):
            while len(await world.fires()) < 3 * 5 or {each.outcome for each in await world.fires()} == {"coalesced"}:
                await asyncio.sleep(0.1)
    finally:
        for process in alive:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    for model_id in models:
        await every_instant_once(world, model_id, START + timedelta(minutes=1))
