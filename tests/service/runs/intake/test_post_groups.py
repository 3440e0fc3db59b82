"""Batches of several runners share a transaction, and each is answered, refused or sent the long way by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.db.session import NotStorable
from orchestrator.errors import Invalid, ServiceError
from orchestrator.runs.intake import plain_queries
from orchestrator.runs.intake.service import Superseded
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.tables import Attempt
from runner.contract.events import EventAck, EventBatch
from tests.service.runs.intake.test_service import progress, running
from tests.service.runs.simulated_scheduler import RunWorld

pytestmark = pytest.mark.anyio


async def post_all(world: RunWorld, *posts: tuple[Attempt, list[dict[str, Any]]]) -> list[Any]:
    bodies = [(attempt, {"attempt": attempt.number, "events": events}) for attempt, events in posts]
    batches = [(attempt, EventBatch.model_validate(body)) for attempt, body in bodies]
    sent = (world.intake.events(attempt, batch) for attempt, batch in batches)
    return await asyncio.gather(*sent, return_exceptions=True)


async def several(world: RunWorld, count: int) -> list[Attempt]:
    return [await running(world, items=9) for _ in range(count)]


async def test_what_arrives_together_is_committed_together(world: RunWorld) -> None:
    attempts = await several(world, 4)
    commits: list[int] = []
    world.db.on_commit(lambda: commits.append(1))
    acks = await post_all(world, *((attempt, [progress(1, 0), progress(2, 1, "wrong_answer")]) for attempt in attempts))
    assert [ack.ack_seq for ack in acks] == [2] * 4
    assert len(commits) == 1
    rows = [await world.row(attempt.run_id) for attempt in attempts]
    assert [(row.items_done, row.items_passed) for row in rows] == [(2, 1)] * 4
    logged = await world.db.read(lambda s: event_queries.after(s, 0))
    done = {row.run_id: row.data["done"] for row in logged if row.type == "progress"}
    assert done == {attempt.run_id: 2 for attempt in attempts}


async def test_a_batch_is_refused_alone(world: RunWorld) -> None:
    good, bad, over = await several(world, 3)
    await world.post(over, {"type": "failed", "seq": 1, "reason": "dataset_error", "message": "x"})
    foreign = {"type": "progress", "seq": 2, "item": {"benchmark": "sample", "problem_id": "no", "outcome": "passed"}}
    answers = await post_all(world, (good, [progress(1, 0)]), (bad, [progress(1, 0), foreign]), (over, [progress(2, 0)]))
    assert isinstance(answers[0], EventAck)
    assert isinstance(answers[1], Invalid)
    assert isinstance(answers[2], Superseded)
    assert (await world.row(good.run_id)).items_done == 1
    assert (await world.row(bad.run_id)).items_done == 0
    assert (await world.post(bad, progress(1, 0))).ack_seq == 1


async def test_a_batch_that_cannot_be_stored_does_not_refuse_the_others(
    world: RunWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = await several(world, 2)
    insert = plain_queries.insert_new_items

    def with_a_value_too_large(connection: Any, rows: Any) -> list[bool]:
        return insert(connection, [{**row, "position": 1 << 70} if row["run_id"] == bad.run_id else row for row in rows])

    monkeypatch.setattr(plain_queries, "insert_new_items", with_a_value_too_large)
    answers = await post_all(world, (good, [progress(1, 0)]), (bad, [progress(1, 0)]))
    assert isinstance(answers[0], EventAck)
    assert isinstance(answers[1], NotStorable)
    assert (await world.row(good.run_id)).items_done == 1
    assert (await world.row(bad.run_id)).items_done == 0


async def test_two_batches_of_a_run_at_once_are_stored_one_after_the_other(world: RunWorld) -> None:
    attempt, other = await several(world, 2)
    answers = await post_all(
        world,
        (attempt, [progress(1, 0)]),
        (attempt, [progress(1, 0), progress(2, 1)]),
        (other, [progress(1, 0)]),
        (attempt, [{"type": "log", "seq": 3, "message": "x"}]),
    )
    assert [answer.ack_seq for answer in answers] == [1, 2, 1, 3]
    assert not any(isinstance(answer, ServiceError) for answer in answers)
    assert (await world.row(attempt.run_id)).items_done == 2
