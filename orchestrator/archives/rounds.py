"""Rounds for ever: what keepers of archives have in common."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog

from orchestrator.db.session import DatabaseUnavailable
from orchestrator.runs.scheduling.lease_queries import LeadershipLost

log = structlog.get_logger()

ROUND_S = 1.0
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 900.0
SWEEP_S = 60.0


async def keep_on(one_round: Callable[[], Awaitable[bool]]) -> None:
    """No error ends them. A round says whether there may be more to do at once."""
    while True:
        busy = False
        try:
            busy = await one_round()
        except (DatabaseUnavailable, LeadershipLost) as error:
            log.warning("archives given up for now", action="archives_failed", error=str(error))
        except Exception:
            log.exception("archives failed", action="archives_crashed")
        await asyncio.sleep(0 if busy else ROUND_S)


def wait_after(tries: int, rng: random.Random) -> timedelta:
    seconds = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(tries - 1, 20))
    return timedelta(seconds=seconds * rng.uniform(0.8, 1.2))
