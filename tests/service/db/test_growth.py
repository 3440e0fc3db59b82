"""What the scheduler and the pages ask of the database does not grow with what is stored and not asked for. It is counted in
steps of SQLite's machine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlmodel import Session

from orchestrator.batches import queries as batch_queries
from orchestrator.costs import queries as cost_queries
from orchestrator.db.workspaces import Actor, NarrowSession, set_workspace
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.gateway.provider_batches import queries as provider_batch_queries
from orchestrator.jobs import queries as job_queries
from orchestrator.leaderboard import queries as board_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.reports import queries as report_queries
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.settings import Settings
from tests.database_work import counted, counted_in
from tests.manual_clock import START
from tests.rows import a_run, an_attempt
from tests.served import served
from tests.stored_runs import Stored, fill

SMALL, LARGE = 100, 1600
DAILY = Stored(items_per_run=2, minutes_apart=24 * 60)
NOW = START + timedelta(days=3)


def grows(few: int, many: int) -> bool:
    """Sixteen times as much is stored; a page of a list may still fill up, and an index get a level deeper."""
    return many > 1.5 * few + 300


QUERIES: dict[str, Callable[[Session], Any]] = {
    "the queue": lambda s: run_queries.due(s, NOW, 50),
    "containers of each kind": job_queries.holding_by_kind,
    "attempts that use capacity": run_queries.holding_attempts,
    "sandbox uids in use": run_queries.used_uid_bases,
    "containers to be removed": run_queries.unremoved_attempts,
    "runs with a container": run_queries.live,
    "starts of the last minute": lambda s: pool_queries.started_since(s, NOW - timedelta(minutes=1), without=()),
    "the database answers": run_queries.answers,
    "members of no batch": lambda s: batch_queries.members(s, []),
    "calls of ended runs": lambda s: provider_batch_queries.release_collected(s, 100, "ended"),
}


OF_A_WORKSPACE: dict[str, Callable[[Session], Any]] = {
    "harnesses": board_queries.harness_names,
    "runs under way": report_queries.under_way,
    "runs of each day": lambda s: report_queries.ended_by_day(s, NOW - timedelta(days=14)),
    "machine time of a month": lambda s: cost_queries.used(s, "day", NOW - timedelta(days=30), 40),
    "spans of a month": lambda s: cost_queries.spans(s, NOW - timedelta(days=30)),
}


def work_of_queries(folder: Path, runs: int, waiting: int) -> dict[str, int]:
    """Steps of each query with so many ended and waiting runs, and three with a container."""
    fill(folder, runs, DAILY, now=START)
    engine = create_engine(f"sqlite:///{folder / 'benchyard.db'}")
    with Session(engine) as session:
        for number in range(3):
            run = a_run(1, now=NOW + timedelta(seconds=number), status="running", attempt=1)
            session.add(run)
            session.flush()
            session.add(an_attempt(run.id, token=None))
        session.add_all(a_run(1, now=NOW + timedelta(hours=1, seconds=number)) for number in range(waiting))
        session.commit()
    steps = {}
    for name, query in QUERIES.items():
        with Session(engine) as session, counted(engine) as work:
            query(session)
        steps[name] = work.steps
    for name, query in OF_A_WORKSPACE.items():
        with NarrowSession(engine) as session, counted(engine) as work:
            set_workspace(session, Actor(1))
            query(session)
        steps[name] = work.steps
    engine.dispose()
    return steps


def test_a_round_of_the_scheduler(new_settings: Callable[..., Settings]) -> None:
    few = work_of_queries(new_settings("few").data, SMALL, 60)
    more_stored = work_of_queries(new_settings("stored").data, LARGE, 60)
    more_waiting = work_of_queries(new_settings("waiting").data, SMALL, 960)
    assert few.keys() == {*QUERIES, *OF_A_WORKSPACE}
    assert not {name: (few[name], more_stored[name]) for name in few if grows(few[name], more_stored[name])}
    asked = {*QUERIES, "runs under way"}
    assert not {name: (few[name], more_waiting[name]) for name in asked if grows(few[name], more_waiting[name])}


def test_trends_look_at_a_limited_number_of_runs_of_each_model(
    new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_queries, "SCORED_OF_MODEL", 3)
    steps = []
    for runs in (SMALL, LARGE):
        folder = new_settings(f"stored-{runs}").data
        newest, _ = fill(folder, runs, DAILY, now=START)
        engine = create_engine(f"sqlite:///{folder / 'benchyard.db'}")
        with NarrowSession(engine) as session, counted(engine) as work:
            set_workspace(session, Actor(1))
            found = report_queries.scored(session, per_series=30)
        engine.dispose()
        assert found[0].id == newest
        assert len(found) == 3 * 20
        steps.append(work.steps)
    assert not grows(*steps), steps


PAGES = ["/", "/fleet", "/limits", "/batches", "/schedules", "/api/fleet", "/api/batches", "/api/jobs?dead_letter=true"]


@pytest.mark.anyio
async def test_pages(new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_queries, "SCORED_OF_MODEL", 3)
    steps: dict[str, list[int]] = {path: [] for path in PAGES}
    for runs in (SMALL, LARGE):
        settings = new_settings(f"stored-{runs}", reconcile_s=3600)
        fill(settings.data, runs, DAILY, now=START)
        async with served(settings, engine=FakeEngine()) as service:
            for path in PAGES:
                tries = []
                for _ in range(3):  # the least: the service works beside it
                    with counted_in(service.services.db) as work:
                        answer = await service.client.get(path)
                    assert answer.status_code == 200, answer.text
                    tries.append(work.steps)
                steps[path].append(min(tries))
    assert not {path: (few, many) for path, (few, many) in steps.items() if grows(few, many)}
