"""The ticking clock goes on whatever happens to the work and to the time of day."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.db.session import DatabaseUnavailable
from orchestrator.schedules.firing.ticker import Ticker

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[4]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_it_ticks_and_no_error_ends_it() -> None:
    calls = {"good": 0, "bad": 0, "slow": 0}

    async def good() -> bool:
        calls["good"] += 1
        return False

    async def bad() -> bool:
        calls["bad"] += 1
        raise DatabaseUnavailable("gone") if calls["bad"] % 2 else RuntimeError("broken")

    async def slow() -> bool:
        calls["slow"] += 1
        await asyncio.sleep(60)
        return False

    ticker = Ticker({"good": good, "bad": bad, "slow": slow}, interval_s=0.02)
    ticker.start()
    await until(lambda: calls["good"] >= 4 and calls["bad"] >= 4)
    assert calls["slow"] == 1, "one at a time"
    await ticker.close()
    seen = dict(calls)
    await asyncio.sleep(0.1)
    assert calls == seen


async def test_what_is_left_is_done_at_once() -> None:
    left = 50

    async def work() -> bool:
        nonlocal left
        left = max(0, left - 1)
        return left > 0

    ticker = Ticker({"work": work}, interval_s=5)
    ticker.start()
    await until(lambda: left == 0)
    await ticker.close()


@pytest.mark.parametrize("days", [1, -1, 3650], ids=["set back", "set forward", "set back ten years"])
async def test_the_time_of_day_jumps(days: int) -> None:
    """A clock that is set back leaves the next tick in the far future; set forward, in the far past."""
    count = 0

    async def work() -> bool:
        nonlocal count
        count += 1
        return False

    ticker = Ticker({"work": work}, interval_s=0.02)
    ticker.start()
    await until(lambda: count >= 2)
    (job,) = ticker._scheduler.get_jobs()
    job._modify(next_run_time=datetime.now(UTC) + timedelta(days=days))
    before = count
    await until(lambda: count >= before + 3)
    await ticker.close()


def test_only_one_module_knows_apscheduler_and_only_one_cronsim() -> None:
    for library, door in (("apscheduler", "ticker.py"), ("cronsim", "cron.py")):
        users = [
            path.name
            for path in (ROOT / "orchestrator").rglob("*.py")
            if any(line.startswith((f"import {library}", f"from {library}")) for line in path.read_text().splitlines())
        ]
        assert users == [door]


def test_the_pure_modules_open_nothing() -> None:
    """Cron, drift, evidence and power need no database, no clock and no APScheduler."""
    code = (
        "import sys, orchestrator.schedules.drift.series, orchestrator.schedules.drift.power;"
        "import orchestrator.schedules.firing.instants;"
        "bad = {'sqlalchemy', 'apscheduler', 'httpx', 'fastapi'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
