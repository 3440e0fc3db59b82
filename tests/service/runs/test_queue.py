"""The queue: every draft becomes a row, a key makes one run, and a quote counts what the run would have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlmodel import Session, select

from orchestrator.datasets.fetching.library import Order, add
from orchestrator.db.idempotency import Idempotency
from orchestrator.db.session import Database
from orchestrator.errors import Conflict, NotFound
from orchestrator.runs import queries as run_queries
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.queueing.drafts import (
    TASK,
    Benchmark,
    Command,
    CommandRunTask,
    Draft,
    EvalExecuteTask,
    EvalGenerateTask,
    EvalJob,
    Grade,
    GradeTask,
    draft_again,
    plan_rows,
)
from orchestrator.runs.queueing.queue import enqueue
from orchestrator.runs.tables import ContainerRun
from runner.contract.commands import CommandTask
from runner.contract.evals import Label
from tests.manual_clock import START
from tests.rows import a_benchmark_task, a_model
from tests.served import Service

pytestmark = pytest.mark.anyio

PARTS = a_benchmark_task(problem_ids=["a", "b", "c"]).benchmarks
COMMAND = CommandTask(image="py:3", argv=["true"], name="x", repeats=4)
SHAPE: dict[str, Any] = {"instance_type": "one", "deadline_s": 60}
DRAFTS: dict[str, tuple[Draft, int, int]] = {
    "benchmark": (Benchmark(task=a_benchmark_task(), model_id=1, samples_per_problem=3, **SHAPE), 2, 6),
    "grade": (Grade(task=GradeTask(benchmarks=PARTS), **SHAPE), 3, 3),
    "command": (
        Command(task=CommandRunTask(command=COMMAND, benchmarks=PARTS[:1]), samples_per_problem=4, **SHAPE),
        3,
        12,
    ),
    "eval_generate": (
        EvalJob(task=EvalGenerateTask(name="e", examples=[(1, Label.POSITIVE, False)]), model_id=1, sample_size=1, **SHAPE),
        1,
        1,
    ),
    "eval_execute": (EvalJob(task=EvalExecuteTask(traces=[5, 6]), sample_size=2, **SHAPE), 2, 2),
}


def put(session: Session, draft: Draft, key: Idempotency | None = None) -> str:
    if not session.exec(select(ContainerRun.id)).first():
        session.merge(a_model(id=1))
        session.flush()
    return enqueue(session, draft, key, now=START, daily_budget_usd=None)


@pytest.mark.parametrize("kind", DRAFTS)
async def test_every_draft_is_stored_and_read_again(database: Database, kind: str) -> None:
    draft, sample_size, items = DRAFTS[kind]
    run_id = await database.write(lambda s: put(s, draft))

    def check(session: Session) -> None:
        run = run_queries.get(session, run_id)
        assert run is not None
        assert (run.kind, run.status, run.model_id, run.task) == (kind, "pending", draft.model_id, draft.task)
        assert (run.sample_size, run.items_total) == (sample_size, items)
        again = draft_again(run)
        assert type(again) is type(draft)
        assert (again.task, again.retry_of, again.items) == (draft.task, run_id, items)
        (event,) = event_queries.of_run(session, run_id, ["created"], after_number=0)
        names = {"benchmark": "m1", "eval_generate": "m1", "grade": "stored-answers"}
        assert event.data == {"model": names.get(kind), "status": "pending"}

    await database.read(check)


async def test_a_key_makes_one_run_and_refuses_another_request(database: Database) -> None:
    draft, key = DRAFTS["grade"][0], Idempotency("POST /x", "key").of({"a": 1})
    first = await database.write(lambda s: put(s, draft, key))
    assert await database.write(lambda s: put(s, draft, key)) == first
    with pytest.raises(Conflict):
        await database.write(lambda s: put(s, draft, key.of({"a": 2})))
    assert await database.read(lambda s: len(s.exec(select(ContainerRun)).all())) == 1


async def test_a_refused_draft_leaves_its_key_unused(database: Database) -> None:
    key = Idempotency("POST /x", "key").of("body")
    gone = Benchmark(task=a_benchmark_task(), model_id=99, **SHAPE)
    with pytest.raises(NotFound):
        await database.write(lambda s: put(s, gone, key))
    assert await database.write(lambda s: put(s, DRAFTS["benchmark"][0], key))


@pytest.mark.parametrize(
    "stored",
    [[], {"benchmarks": []}, {"kind": "other", "benchmarks": []}, {"kind": "command", "benchmarks": []}],
    ids=["list", "no kind", "unknown kind", "no command"],
)
def test_a_task_is_checked_when_it_is_read(stored: Any) -> None:
    with pytest.raises(ValidationError):
        TASK.validate_python(stored)


def test_archives_hold_a_task_as_flat_rows() -> None:
    task = DRAFTS["command"][0].task
    (row,) = plan_rows(TASK.validate_json(TASK.dump_json(task)))
    assert row["command"]["image"] == "py:3"
    assert row["problem_ids"] == ["a", "b", "c"]
    assert "choice" not in row


ROWS = [
    {"question_id": number, "question": "?", "options": ["a", "b"], "answer": "B", "answer_index": 1, "category": category}
    for number, category in enumerate(("law", "law", "physics"))
]


async def test_a_quote_honours_categories_and_samples(shared_service: Service, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    add(shared_service.settings.data, Order("colours", source=str(tmp_path / "q.jsonl"), form="mmlu_pro"))
    for asked, items in (
        ({"subset_pct": 100.0}, 3),
        ({"subset_pct": 100.0, "category": ["law"]}, 2),
        ({"sample_size": 1}, 1),
        ({"subset_pct": 100.0, "category": ["physics"], "samples_per_problem": 4}, 4),
        ({"ids": ["1"]}, 1),
    ):
        body = {"model_id": "demo-strong", "benchmarks": ["colours"], **asked}
        answer = await shared_service.client.post("/api/quotes", json=body)
        assert (answer.status_code, answer.json().get("items")) == (200, items), asked
