"""The statements of pages, on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import Session

from orchestrator.alerts.tables import Alert
from orchestrator.db.session import Database
from orchestrator.gateway.ledger.tables import GatewayCall
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.queries import RunFilter
from tests.manual_clock import START
from tests.rows import a_model, a_run, an_item

pytestmark = pytest.mark.anyio
SCORE = {
    "estimate": 0.5,
    "low": 0.3,
    "high": 0.7,
    "n": 10,
    "passed": 5,
    "n_all": 10,
    "estimate_all": 0.5,
    "comparable": True,
}


async def fill(database: Database) -> list[str]:
    """Five runs, oldest first: three finished ones of the first model, a pending and a running one of the second."""
    changes: list[dict[str, Any]] = [
        {"status": "completed", "score": SCORE},
        {"status": "completed", "score": SCORE, "benchmarks": ["mmlu_pro", "sample"]},
        {"status": "completed", "score": SCORE, "trigger_type": "schedule"},
        {"status": "pending", "model_id": 2},
        {"status": "running", "model_id": 2, "benchmarks": ["mmluXpro"]},
    ]
    rows = [a_run(now=START + timedelta(minutes=index), **{"model_id": 1, **each}) for index, each in enumerate(changes)]

    def write(session: Session) -> list[str]:
        session.add(a_model("m1"))
        session.flush()
        session.add(a_model("m2"))
        session.flush()
        session.add_all(rows)
        session.flush()
        return [row.id for row in rows]

    return await database.write(write)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (RunFilter(), [4, 3, 2, 1, 0]),
        (RunFilter(status="completed"), [2, 1, 0]),
        (RunFilter(model_id=2), [4, 3]),
        (RunFilter(trigger="schedule"), [2]),
        (RunFilter(benchmark="sample"), [3, 2, 1, 0]),
        (RunFilter(benchmark="mmlu_pro"), [1]),
        (RunFilter(benchmark='sample", "x'), []),
        (RunFilter(benchmark="%"), []),
    ],
    ids=str,
)
async def test_filters(database: Database, wanted: RunFilter, found: list[int]) -> None:
    ids = await fill(database)

    rows = await database.read(lambda s: page_queries.runs(s, wanted, limit=10))

    assert [ids.index(row.id) for row in rows] == found


async def test_pages_follow_each_other(database: Database) -> None:
    ids = await fill(database)

    rows = await database.read(lambda s: page_queries.runs(s, RunFilter(), limit=2, after=ids[3]))

    assert [row.id for row in rows] == [ids[2], ids[1]]


async def test_series_queue_and_names(database: Database) -> None:
    ids = await fill(database)

    newest = await database.read(lambda s: page_queries.scored(s, per_series=1))
    waiting = await database.read(page_queries.under_way)

    assert [run.id for run in newest] == [ids[2], ids[1]]
    assert [row.id for row in waiting] == [ids[4], ids[3]]
    assert await database.read(page_queries.names_in_use) == (
        ["mmluXpro", "mmlu_pro", "sample"],
        ["manual", "schedule"],
    )


async def test_items_and_what_is_beside_them(database: Database) -> None:
    run_id = (await fill(database))[0]
    outcomes = ["passed", "wrong_answer", "passed", "wrong_answer"]

    def write(session: Session) -> None:
        for position, outcome in enumerate(outcomes):
            session.add(an_item(run_id, f"p{position}", position=position, outcome=outcome))
        call = {"request_hash": "h", "provider": "p", "model": "m", "state": "settled", "created_at": START}
        session.add(GatewayCall(run_id=run_id, call_key="k1", answer=b"x", **call))

    await database.write(write)

    lines = await database.read(lambda s: page_queries.items(s, run_id, limit=9))
    assert [(line.position, line.outcome) for line in lines] == list(enumerate(outcomes))
    page = await database.read(lambda s: page_queries.items(s, run_id, limit=1, after=1, outcome="wrong_answer"))
    assert [line.position for line in page] == [3]
    verdicts = await database.read(lambda s: page_queries.verdicts(s, run_id))
    assert [(each.position, each.problem_id, each.outcome) for each in verdicts] == [
        (position, f"p{position}", outcome) for position, outcome in enumerate(outcomes)
    ]
    assert await database.read(lambda s: page_queries.neighbours(s, run_id, 1, None)) == (0, 2)
    assert await database.read(lambda s: page_queries.neighbours(s, run_id, 1, "wrong_answer")) == (None, 3)
    calls = await database.read(lambda s: page_queries.calls(s, run_id, ["k1", "k2"]))
    assert [call.call_key for call in calls] == ["k1"]


async def test_recent_alerts(database: Database) -> None:
    await fill(database)

    def write(session: Session) -> None:
        for day in (0, 20):
            session.add(Alert(uid=f"a{day}", model_id=1, kind="drift", title="t", at=START + timedelta(days=day)))

    await database.write(write)

    found = await database.read(lambda s: page_queries.alerts(s, since=START + timedelta(days=6), limit=5))

    assert [(alert.uid, model.slug) for alert, model in found] == [("a20", "m1")]
