"""Verdicts and opinions that come at the same time, on both databases: counts always agree with the rows."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import pytest
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.event_store import EvalEventStore
from orchestrator.evals.feedback import Opinion, rate
from orchestrator.evals.tables import Eval, EvalJob, EvalSet
from orchestrator.runs.queueing.drafts import EvalExecuteTask
from orchestrator.runs.tables import ContainerRun
from orchestrator.traces import queries as trace_queries
from orchestrator.traces.records import record_of
from orchestrator.traces.service import store
from runner.contract.evals import Judgement, JudgementsEvent, Label
from tests.manual_clock import START
from tests.rows import a_model, a_run

pytestmark = pytest.mark.anyio

TRACES = 60


def prepared(session: Session) -> tuple[str, list[int]]:
    """An eval set with traces, an eval, and a job that executes it."""
    model = a_model()
    session.add(model)
    session.flush()
    records = [record_of({"id": f"t{number}", "input": number}) for number in range(TRACES)]
    assert store(session, records, "", None, START).imported == TRACES
    assert store(session, records, "", None, START).unchanged == TRACES
    numbers = trace_queries.all_numbers(session, None)
    session.add(EvalSet(id="s", name="s", created_at=START, updated_at=START))
    session.flush()
    counts = {"training_n": 1, "training_right": 1, "held_out_n": 1, "held_out_right": 1}
    row = Eval(
        id="e",
        eval_set_id="s",
        name="e",
        version=1,
        code="",
        model_id=model.id or 0,
        run_id="r",
        tests=[],
        rounds=[],
        created_at=START,
        updated_at=START,
        **counts,
    )
    run = a_run(
        model.id or 0,
        items=0,
        kind="eval_execute",
        status="running",
        items_total=TRACES,
        task=EvalExecuteTask(traces=numbers),
    )
    session.add(row)
    session.add(run)
    session.flush()
    session.add(EvalJob(run_id=run.id, eval_set_id="s", eval_id="e"))
    return run.id, numbers


def judged(session: Session, taking: EvalEventStore, run_id: str, judgements: list[Judgement]) -> None:
    run = session.get(ContainerRun, run_id, with_for_update=True)
    assert run is not None
    taking.take(session, run, JudgementsEvent(seq=1, judgements=judgements), START)
    session.add(run)


async def test_counts_agree_with_rows_whatever_comes_at_once(database: Database) -> None:
    run_id, numbers = await database.write(prepared)
    taking, rng = EvalEventStore(), random.Random(3)
    work = []
    for start in range(0, TRACES, 6):
        part = [Judgement(key=key, passed=rng.random() < 0.5, score=0.5) for key in numbers[start : start + 6]]
        work += [partial(judged, taking=taking, run_id=run_id, judgements=part)] * 2  # every batch comes twice
    for number in range(TRACES):
        for rating in rng.sample([Label.POSITIVE, Label.NEGATIVE, None], 2):
            work.append(partial(rate, eval_set_id="s", opinions=[Opinion(f"t{number}", rating)], now=START))
    rng.shuffle(work)
    await asyncio.gather(*(database.write(each) for each in work))

    def look(session: Session) -> tuple[Eval, int, ContainerRun]:
        row, run = eval_queries.get(session, "e"), session.get(ContainerRun, run_id)
        assert row is not None
        assert run is not None
        return row, len(eval_queries.verdicts(session, "e", limit=1000, contradictions=True)), run

    row, contradictions, run = await database.read(look)
    stored = await database.read(lambda s: eval_queries.verdicts(s, "e", limit=1000))
    assert (row.execution_count, run.items_done, len(stored)) == (TRACES, TRACES, TRACES)
    assert row.passed_count == run.items_passed == sum(bool(each.passed) for each in stored)
    assert row.contradiction_count == contradictions == sum(bool(each.contradiction) for each in stored)
    assert contradictions > 0


async def test_two_imports_of_the_same_traces_at_once(database: Database) -> None:
    records = [record_of({"id": f"x{number}", "input": number, "label": "good"}) for number in range(40)]
    await asyncio.gather(*(database.write(lambda s: store(s, records, "p", None, START)) for _ in range(6)))
    assert await database.read(lambda s: trace_queries.count(s, "p")) == 40
