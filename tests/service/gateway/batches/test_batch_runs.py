"""Runs at batch prices in a real service: real runners with the real SDKs, and a provider with both batch interfaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.exceptions import HTTPException

from tests.faults.service import wait_for
from tests.service.gateway.batches.batch_provider import BatchProvider, batch_provider
from tests.service.gateway.batches.batch_world import FULL_USD, PROTOCOLS, BatchWorld, sums


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BatchWorld]:
    with batch_provider() as provider:
        world = BatchWorld(tmp_path_factory.mktemp("batches") / "data", provider)
        world.start()
        try:
            world.prepare()
            yield world
        finally:
            world.service.kill()
            world.client.close()


@pytest.fixture
def world(served: BatchWorld) -> BatchWorld:
    fresh = BatchProvider()
    url = served.provider.url
    served.provider.__dict__.update({**fresh.__dict__, "url": url, "_number": served.provider._number})
    return served


@pytest.mark.parametrize("model", PROTOCOLS)
def test_a_run_is_answered_by_a_batch_at_half_the_price(world: BatchWorld, model: str) -> None:
    world.provider.held = True
    run_id = world.submit(model)
    waiting = world.waits(run_id, "submitted, 0 of 6 back, at the latest in 24 h")
    assert waiting["attempt"] == 1
    assert waiting["not_before"] is not None
    wait_for(lambda: not world.rows("select 1 from attempts where run_id=? and ended_at is null", run_id), 30, "it ends")
    world.provider.finish()
    run = world.ended(run_id)
    assert (run["status"], run["attempt"], run["passed"]) == ("completed", 2, 6), run
    assert run["cost_usd"] == pytest.approx(6 * FULL_USD / 2)
    assert world.provider.billed.total() == 6
    assert not world.provider.called
    assert {call["state"] for call in world.calls(run_id)} == {"settled"}
    assert run["batch"] is True
    assert not world.rows("select 1 from batch_calls where run_id=?", run_id)
    assert world.rows("select nano_usd from batch_reserves where run_id=?", run_id) == [(0,)]
    first = run["attempts"][0]  # its exit code is not 0 if the machine is so busy that it is told to end
    assert (first["exit_code"] is not None, first["reason"]) == (True, None)


@pytest.mark.parametrize("model", ["chat", "claude"])
def test_what_a_batch_did_not_answer_is_asked_in_the_ordinary_way(world: BatchWorld, model: str) -> None:
    fates = {"0 + 42": "refused", "1 + 41": "broken", "2 + 40": "expired", "3 + 39": "missing"}
    world.provider.fates = lambda question: next((fate for part, fate in fates.items() if part in question), "answered")
    run = world.ended(world.submit(model))
    assert (run["status"], run["passed"]) == ("completed", 6), run
    assert world.provider.billed.total() == 2
    assert world.provider.called.total() == 4
    assert run["cost_usd"] == pytest.approx(2 * FULL_USD / 2 + 4 * FULL_USD)


def test_a_provider_without_batches_is_asked_in_the_ordinary_way(world: BatchWorld) -> None:
    def no_such_path() -> None:
        raise HTTPException(404)

    world.provider.at[("POST", "/v1/files")] = no_such_path
    run = world.ended(world.submit("chat"))
    assert (run["status"], run["passed"], world.provider.called.total()) == ("completed", 6, 6), run


def test_cancel_cancels_the_batch_and_settles_what_it_answered(world: BatchWorld) -> None:
    world.provider.held = True
    world.provider.fates = lambda question: "early" if "0 + 42" in question else "answered"
    run_id = world.submit("chat")
    world.waits(run_id, "submitted, ")
    assert world.client.post(f"/api/container-runs/{run_id}/cancel").status_code < 300
    assert world.ended(run_id)["status"] == "cancelled"
    wait_for(
        lambda: ("POST", "cancel") in world.provider.requests and world.parts_ended(run_id), 60, "the batch is cancelled"
    )
    assert world.run(run_id)["cost_usd"] == pytest.approx(FULL_USD / 2)
    assert sorted(call["state"] for call in world.calls(run_id)) == ["failed"] * 5 + ["settled"]
    assert world.rows("select nano_usd from batch_reserves where run_id=?", run_id) == [(0,)]


def test_a_budget_is_reserved_in_full_and_never_passed(world: BatchWorld) -> None:
    """Room for the worst case of two calls at a time: three rounds, each of two calls."""
    worst = world.rows("select max(worst_nano_usd) from batch_calls")
    world.provider.held = True
    probe = world.submit("chat")
    world.waits(probe, "submitted, ")
    ((worst_nano_usd,),) = world.rows("select max(worst_nano_usd) from batch_calls where run_id=?", probe) or worst
    assert world.client.post(f"/api/container-runs/{probe}/cancel").status_code < 300
    world.provider.held = False
    run = world.ended(world.submit("chat", budget_usd=2.5 * worst_nano_usd / 1e9))
    assert (run["status"], run["passed"]) == ("completed", 6), run
    assert run["attempt"] >= 3
    assert run["cost_usd"] == pytest.approx(6 * FULL_USD / 2)
    sizes = [calls for (calls,) in world.rows("select calls from batch_parts where run_id=?", run["id"])]
    assert max(sizes) == 2


def test_several_turns_and_a_judge_go_round_by_round(world: BatchWorld) -> None:
    judged = sums("judged", 3) | {"judge": {"by": "model", "model": "claude", "rubric": "It must be {{ target }}"}}
    world.add(judged)
    world.provider.answer = lambda question: "Grade: C" if "It must be" in question else "42"
    run = world.ended(world.submit("chat", benchmarks=["judged"], sample_size=3))
    assert (run["status"], run["passed"], run["attempt"]) == ("completed", 3, 3), run
    assert not world.provider.called
    assert world.provider.billed.total() == 6
    assert run["judge_cost_usd"] == pytest.approx(3 * FULL_USD / 2)


def test_a_demo_model_has_no_batches(world: BatchWorld) -> None:
    body = {"model_id": "demo-strong", "benchmarks": ["sums"], "sample_size": 2, "batch": True}
    answer = world.client.post("/api/container-runs", json=body)
    assert answer.status_code == 422
    assert "has no batches" in answer.text


def test_the_page_and_the_quote_know_the_price_of_batches(world: BatchWorld) -> None:
    body = {"model_id": "chat", "benchmarks": ["sums"], "sample_size": 6}
    full, half = (world.client.post("/api/quotes", json={**body, "batch": batch}).json() for batch in (False, True))
    assert half["worst_case_usd"] == pytest.approx(full["worst_case_usd"] / 2)
    assert "the provider's batches" in half["sentence"]
    assert 'name="batch" value="1"' in world.client.get("/runs/new").text
    form = {"model": "chat", "benchmark": "sums", "sample_size": "2", "batch": "1"}
    world.provider.held = True
    started = world.client.post("/runs/new", data=form, headers={"origin": world.service.url})
    assert started.status_code == 303, started.text
    run_id = started.headers["location"].rpartition("/")[2]
    world.waits(run_id, "submitted, ")
    page = world.client.get(f"/runs/{run_id}").text
    assert "submitted, 0 of 2 back, at the latest in 24 h" in page
    assert "at batch prices" in page
    world.provider.finish()
    assert world.ended(run_id)["passed"] == 2


def test_a_schedule_runs_at_the_price_of_batches(world: BatchWorld) -> None:
    body = {"model_id": "chat", "cron_expression": "@yearly", "sample_size": 2, "benchmarks": ["sums"], "batch": True}
    made = world.client.post("/api/schedules", json=body)
    assert made.status_code in (200, 201), made.text
    assert world.client.get("/api/schedules/chat").json()["batch"] is True
    fired = world.client.post("/api/schedules/chat/run")
    assert fired.status_code == 202, fired.text
    run = world.ended(fired.json()["run_id"])
    assert (run["batch"], run["passed"], world.provider.billed.total()) == (True, 2, 2)
