"""A death of the process before every statement and around the commit of a firing: no instant is lost, none is doubled."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.pool import NullPool
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.schedules.firing.launch import Launcher
from orchestrator.schedules.firing.rounds import fire
from tests.manual_clock import START
from tests.service.schedules.simulated_schedules import ScheduleWorld, a_launcher, every_instant_once

pytestmark = pytest.mark.anyio

KILLED = 9
FINISHED = 0
MAX_STATEMENTS = 40


def die_at(url: str, step: int, model_id: int, now: datetime, launcher: Launcher) -> int:
    """Fire in another process that dies without a word at its `step`-th statement or commit; its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        engine = create_engine(url, poolclass=NullPool)
        count = 0

        def tick(*_: Any) -> None:
            nonlocal count
            count += 1
            if count == step:
                os._exit(KILLED)

        event.listen(engine, "before_cursor_execute", tick)
        event.listen(engine, "commit", tick)
        with Session(engine) as session, session.begin():
            fire(session, model_id, now, timedelta(), launcher)
        tick()
        os._exit(FINISHED)
    except BaseException:
        os._exit(3)


async def test_killed_at_every_step(database: Database, world: ScheduleWorld, tmp_path: Path) -> None:
    model_id = await world.add()
    first = START + timedelta(minutes=1)
    launcher = a_launcher(tmp_path)
    deaths = 0
    for step in range(1, MAX_STATEMENTS):
        world.clock.advance(60)
        # Given a process that dies at this step
        code = die_at(database.url, step, model_id, world.clock.now(), launcher)
        assert code in (KILLED, FINISHED)
        deaths += code == KILLED
        # When another one starts and looks
        _, firing = await world.boot()
        await firing.round()
        # Then the instant has its row and its run, once
        await every_instant_once(world, model_id, first)
        assert set(await world.outcomes()) == {"fired"}
        await world.end_runs()
        if code == FINISHED:
            break
    assert code == FINISHED
    assert deaths >= 8, "it died before each statement, at the commit, and after it"
