"""F13 and the rules of the event stream: one row each, contiguous acknowledgement, whatever order and however often."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import Conflict, Invalid
from orchestrator.runs import item_queries
from orchestrator.runs.intake.service import Superseded
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.tables import Attempt
from runner.contract.events import EventBatch
from tests.service.runs.simulated_scheduler import RunWorld

pytestmark = pytest.mark.anyio


async def running(world: RunWorld, **changed: Any) -> Attempt:
    """A run whose runner has claimed and waits."""
    world.engine.behaviour = world.claims_and_waits
    run_id = await world.new_run(**changed)
    await world.round()
    await world.quiet()
    return (await world.attempts(run_id))[-1]


def progress(seq: int, problem: int, outcome: str = "passed", **more: Any) -> dict[str, Any]:
    item = {"benchmark": "sample", "problem_id": f"p{problem}", "outcome": outcome, **more}
    return {"type": "progress", "seq": seq, "item": item}


@pytest.mark.parametrize("seed", range(4))
async def test_doubled_reordered_gapped_and_unanswered(world: RunWorld, seed: int) -> None:
    """A runner over a bad line: batches get lost, arrive twice, out of order and unanswered."""
    rng = random.Random(seed)
    attempt = await running(world, items=12)
    events = [progress(n + 1, n, rng.choice(["passed", "wrong_answer"])) for n in range(12)]
    events.insert(5, {"type": "log", "seq": 0, "message": "half"})
    for number, event in enumerate(events):
        event["seq"] = number + 1
    acked, late = 0, []
    while acked < len(events):
        batch = events[acked : acked + rng.randint(1, 5)]
        late.append(batch)
        for sent in rng.sample(late, rng.randint(0, len(late))):  # old ones arrive again, newer ones before older
            shuffled = rng.sample(sent, len(sent))
            ack = (await world.post(attempt, *shuffled)).ack_seq
            assert ack >= acked
            if rng.random() < 0.6:  # else the answer is lost
                acked = ack
    rows = await world.db.read(lambda s: event_queries.after(s, 0, run_id=attempt.run_id))
    seqs = [row.seq for row in rows if row.seq is not None]
    assert seqs == list(range(1, len(events) + 1))
    row = await world.row(attempt.run_id)
    assert row.items_done == 12
    assert row.items_passed == sum(e["type"] == "progress" and e["item"]["outcome"] == "passed" for e in events)
    assert (await world.post(attempt, {"type": "complete", "seq": 14, "items": 12})).ack_seq == 14
    assert (await world.row(attempt.run_id)).status == "completed"
    await world.settle()
    await world.check()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=8))
def test_only_what_is_contiguous_is_acknowledged(batches: list[list[int]], sqlite_world: Any) -> None:
    sqlite_world(batches)


@pytest.fixture
def sqlite_world(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Any) -> Any:
    from orchestrator.db.session import Database
    from tests.manual_clock import ManualClock

    def play(batches: list[list[int]]) -> None:
        async def main() -> None:
            path = tmp_path_factory.mktemp("db") / "x.db"
            path.write_bytes(sqlite_template.read_bytes())
            world = RunWorld(Database(f"sqlite:///{path}"), ManualClock())
            world.boot()
            attempt = await running(world, items=9)
            expected = 0
            for seqs in batches:
                for seq in sorted(seqs):
                    expected = seq if seq == expected + 1 else expected
                ack = await world.post(attempt, *(progress(seq, seq - 1) for seq in seqs))
                assert ack.ack_seq == expected
            row = await world.row(attempt.run_id)
            assert row.items_done == expected
            await world.engine.end_all()
            await world.db.close()

        asyncio.run(main())

    return play


async def test_two_batches_at_once(world: RunWorld) -> None:
    attempt = await running(world)
    acks = await asyncio.gather(*(world.post(attempt, progress(1, 0), progress(2, 1)) for _ in range(6)))
    assert {ack.ack_seq for ack in acks} == {2}
    assert (await world.row(attempt.run_id)).items_done == 2


async def test_one_result_per_item_over_attempts(world: RunWorld) -> None:
    attempt = await running(world)
    await world.post(attempt, progress(1, 0, "passed"))
    world.engine.crash(attempt.container_name)
    await world.rounds(2)
    await world.quiet()
    second = (await world.attempts(attempt.run_id))[-1]
    assert second.number == 2
    await world.post(second, progress(1, 0, "wrong_answer"), progress(2, 1, "passed"))
    verdicts = await world.db.read(lambda s: item_queries.verdicts(s, attempt.run_id))
    assert [verdict[3] for verdict in verdicts] == ["passed", "passed"]


async def test_an_older_attempt_is_told_to_stop(world: RunWorld) -> None:
    attempt = await running(world)
    world.engine.crash(attempt.container_name)
    await world.rounds(2)
    with pytest.raises(Superseded, match="must stop"):
        await world.intake.events(attempt, EventBatch.model_validate({"attempt": 1, "events": [progress(1, 0)]}))
    with pytest.raises(Superseded):
        await world.intake.claim(attempt, "again")
    assert (await world.row(attempt.run_id)).items_done == 0


async def test_a_batch_of_another_attempt_is_refused(world: RunWorld) -> None:
    attempt = await running(world)
    with pytest.raises(Superseded, match="attempt 1, the events to attempt 2"):
        await world.intake.events(attempt, EventBatch.model_validate({"attempt": 2, "events": [progress(1, 0)]}))


async def test_a_claim_may_be_repeated_by_the_same_runner_only(world: RunWorld) -> None:
    attempt = await running(world)
    again = await world.intake.claim(attempt, attempt.runner_id or "")
    assert again.run.status == "running"
    with pytest.raises(Superseded):
        await world.intake.claim(attempt, "somebody else")


async def test_complete_too_early_stores_nothing_of_its_batch(world: RunWorld) -> None:
    attempt = await running(world)
    batch = [progress(1, 0), {"type": "complete", "seq": 2, "items": 2}]
    with pytest.raises(Conflict, match="1 of 2 items"):
        await world.post(attempt, *batch)
    row = await world.row(attempt.run_id)
    assert (row.status, row.items_done) == ("running", 0)


async def test_an_item_of_another_run_is_refused(world: RunWorld) -> None:
    attempt = await running(world)
    with pytest.raises(Invalid, match="not part of run"):
        await world.post(attempt, progress(1, 77))


async def test_what_comes_after_the_end(world: RunWorld) -> None:
    attempt = await running(world)
    done = [progress(1, 0), progress(2, 1), {"type": "complete", "seq": 3, "items": 2}]
    assert (await world.post(attempt, *done)).ack_seq == 3
    assert (await world.post(attempt, *done)).ack_seq == 3, "the answer was lost: told again"
    assert (await world.row(attempt.run_id)).stage == "finished"


async def test_a_text_that_postgresql_cannot_hold(world: RunWorld) -> None:
    attempt = await running(world)
    events = [
        progress(1, 0, detail="nul \x00 here", answer="and \x00 here"),
        {"type": "heartbeat", "seq": 2, "waiting_for": "a\x00b"},
        {"type": "log", "seq": 3, "message": "a\x00b"},
        {"type": "failed", "seq": 4, "reason": "runner_error", "message": "a\x00b"},
    ]
    assert (await world.post(attempt, *events)).ack_seq == 4
    item = await world.db.read(lambda s: item_queries.at(s, attempt.run_id, 0))
    assert item is not None
    assert item.data["answer"] == "and \x00 here"


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("dataset_error", "failed"),
        ("provider_error", "failed"),
        ("budget_exhausted", "completed"),
        ("runner_error", "running"),
    ],
)
async def test_what_a_runner_may_give_up_for(world: RunWorld, reason: str, status: str) -> None:
    attempt = await running(world)
    await world.post(attempt, progress(1, 0), {"type": "failed", "seq": 2, "reason": reason, "message": "because"})
    row = await world.row(attempt.run_id)
    assert row.status == status
    if status != "running":
        assert row.reason == reason
        assert row.score is not None
    else:
        world.engine.crash(attempt.container_name)
        await world.round(5)
        row = await world.row(attempt.run_id)
        assert (row.status, row.reason, row.error_message) == ("pending", reason, "because")


async def test_giving_up_after_a_cancel_ends_as_cancelled(world: RunWorld) -> None:
    attempt = await running(world)
    await world.cancel(attempt.run_id)
    await world.post(attempt, {"type": "failed", "seq": 1, "reason": "provider_error", "message": "no"})
    await world.settle()
    assert await world.status(attempt.run_id) == ("cancelled", "cancelled_by_user")
    await world.check()


async def test_every_answer_says_what_is_wanted(world: RunWorld) -> None:
    attempt = await running(world)
    assert (await world.post(attempt, {"type": "heartbeat", "seq": 1})).desired == "run"
    await world.cancel(attempt.run_id)
    assert (await world.post(attempt, {"type": "heartbeat", "seq": 2})).desired == "cancel"


async def test_only_receipt_renews_the_lease(world: RunWorld) -> None:
    attempt = await running(world)
    for seq in range(1, 30):
        await world.post(attempt, {"type": "heartbeat", "seq": seq})
        await world.round(10)
    assert (await world.row(attempt.run_id)).status == "running"


async def test_values_between_0_and_1_are_stored_bounded_and_averaged(world: RunWorld) -> None:
    attempt = await running(world, items=4)
    await world.post(
        attempt,
        progress(1, 0, "passed", score=1.0),
        progress(2, 1, "wrong_answer", score=0.25),
        progress(3, 2, "infra_error", score=0.9),  # nothing was scored
        progress(4, 3, "wrong_answer"),
        {"type": "complete", "seq": 5},
    )
    rows = await world.db.read(lambda s: list(item_queries.whole_page(s, attempt.run_id, limit=10, after=-1)))
    assert [row.score for row in rows] == [1.0, 0.25, None, None]
    assert [row.data["score"] for row in rows] == [1.0, 0.25, None, None]
    score = (await world.row(attempt.run_id)).score
    assert score is not None
    assert (score["metric"], score["estimate"], score["passed"], score["n"]) == ("mean", pytest.approx(1.25 / 3), 1, 3)


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan"), float("inf"), "a lot"])
def test_a_value_outside_0_and_1_is_refused(value: object) -> None:
    event = progress(1, 0, "wrong_answer", score=value)
    with pytest.raises(ValueError, match="score"):
        EventBatch.model_validate({"attempt": 1, "events": [event]})
