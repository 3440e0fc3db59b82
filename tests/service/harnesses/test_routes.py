"""Harness runs through the API with the fake engine: what is refused, items without a plan, progress, retry, compare."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine
from runner.contract.harness import MAX_ID_CHARS, MAX_TEXT_CHARS
from runner.contract.run_spec import CALL_KEY_HEADER
from tests.conftest import settings_in
from tests.served import RunnerClient, Service, served

pytestmark = pytest.mark.anyio

HARNESS: dict[str, Any] = {
    "image": "inspect:1",
    "name": "sums",
    "command": ["inspect", "eval", "sums.py"],
    "files": [{"name": "sums.py", "content": "print(1)"}],
    "results": {"format": "inspect"},
}
answers: dict[str, Any] = {}
"""What the runner got from the service for its unusual requests."""
crashes = {"next": 0}
QUESTION = {"messages": [{"role": "user", "content": "2+2?"}], "max_tokens": 10}


async def harness(container: FakeContainer) -> int:
    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        await runner.claim()
        task = runner.spec["harness"]
        answers["spec"] = runner.spec
        await runner.send(runner.next("stage", stage="running", facts={"image_id": "sha256:1"}))
        model = runner.spec["model"]
        for number in (0, 0, 1):  # the second is the first one again
            key = f"harness/{'a' * 64}/{number}/0"
            answer = await runner.http.post(
                f"/gateway/{model['provider']}/v1/chat/completions",
                json={"model": model["name"], **QUESTION},
                headers={CALL_KEY_HEADER: key},
            )
            answers.setdefault("sources", []).append(answer.headers.get("x-benchyard-source"))
        await runner.send(runner.next("expected", total=6))
        done = {key["problem_id"] for key in runner.spec["finished"]}
        for number in range(4):
            if f"{task['name']}/{number}" in done:
                continue
            outcome = "infra_error" if number == 3 and not done and "FAULTY" in task["env"] else "passed"
            item = {"benchmark": task["name"], "problem_id": f"{task['name']}/{number}", "outcome": outcome, "answer": "4"}
            await runner.send(runner.next("progress", item=item), runner.next("log", message="same"))
            await runner.send(runner.next("progress", item=item))
        if crashes["next"] > 0:
            crashes["next"] -= 1
            await runner.send(runner.next("failed", reason="harness_failed", message="exit code 1"))
            return 4
        await runner.send(runner.next("complete"))
        return 0
    finally:
        await runner.close()


@pytest.fixture(scope="module")
async def yard(tmp_path_factory: pytest.TempPathFactory, data_template: Path, anyio_backend: str) -> AsyncIterator[Service]:
    make = settings_in(tmp_path_factory.mktemp("harnesses"), data_template)
    settings = make(command_images=("inspect:*",), max_instances=50, vcpu_capacity=100)
    async with served(settings, engine=FakeEngine(behaviour=harness)) as service:
        yield service
        await service.engine.end_all()


async def submit(service: Service, model: str = "demo-strong", **changed: Any) -> str:
    body = {"kind": "harness", "model_id": model, "harness": {**HARNESS, **changed}}
    answer = await service.client.post("/api/container-runs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


async def test_items_that_nobody_planned_make_a_score(yard: Service) -> None:
    answers.clear()
    run = await yard.until(await submit(yard, env={"FAULTY": "1"}), "completed")
    assert (run["kind"], run["image"], run["model"], run["benchmarks"]) == ("harness", "inspect:1", "demo-strong", ["sums"])
    assert run["progress"] == {"done": 4, "total": 4}, "it is over when the harness says so, though 6 were announced"
    assert (run["score"]["n"], run["score"]["passed"], run["score"]["excluded"]) == (3, 3, 1)
    assert run["flags"] == ["excluded_over_limit"]
    assert answers["sources"] == ["bought", "replayed", "bought"]
    assert run["output_tokens"] > 0, "by the ledger, since items of a harness do not name their calls"
    assert answers["spec"]["harness"]["results"] == {"format": "inspect", "paths": ["logs/*.eval", "logs/*.json"]}
    items = (await yard.client.get(f"/api/container-runs/{run['id']}/items")).json()["items"]
    assert [(item["position"], item["problem_id"]) for item in items] == [(n, f"sums/{n}") for n in range(4)]
    for path in (f"/runs/{run['id']}", f"/runs/{run['id']}/items/1", "/runs", "/"):
        page = await yard.client.get(path, headers={"accept": "text/html"})
        assert page.status_code == 200, path
    archive = await yard.client.get(f"/api/container-runs/{run['id']}/archive")
    assert archive.status_code == 200
    retried = await yard.client.post(f"/api/container-runs/{run['id']}/retry")
    assert retried.status_code == 202, "an item that did not count is done again"
    again = await yard.until(retried.json()["run_id"], "completed")
    assert again["score"]["n"] == 4
    assert again["cost_usd"] == 0.0, "its answers are those that were paid for"


async def test_a_crash_is_followed_by_another_attempt_that_keeps_the_items(yard: Service) -> None:
    answers.clear()
    crashes["next"] = 1
    run_id = await submit(yard)
    while (
        (await yard.run(run_id))["attempts"][:1] == [] or crashes["next"] or (await yard.run(run_id))["status"] == "running"
    ):
        await asyncio.sleep(0.03)
    yard.clock.advance(5)
    run = await yard.until(run_id, "completed")
    assert [attempt["reason"] for attempt in run["attempts"]] == ["harness_failed", None]
    assert {
        item["attempt"] for item in (await yard.client.get(f"/api/container-runs/{run['id']}/items")).json()["items"]
    } == {1}
    assert answers["sources"] == ["bought", "replayed", "bought", "replayed", "replayed", "replayed"]


async def test_runs_of_one_harness_are_compared_in_pairs(yard: Service) -> None:
    ids = [await submit(yard, model) for model in ("demo-strong", "demo-weak")]
    for run_id in ids:
        await yard.until(run_id, "completed")
    page = await yard.client.get("/compare", params={"run": ids}, headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "different samples" not in page.text
    listed = {run["id"] for run in (await yard.client.get("/api/container-runs")).json()["items"]}
    assert set(ids) <= listed
    board = (await yard.client.get("/api/leaderboard", params={"benchmark": "sums"})).json()
    assert {place["model"] for place in board["places"]} == {"demo-strong", "demo-weak"}, board
    page = await yard.client.get("/leaderboard", params={"benchmark": "sums"}, headers={"accept": "text/html"})
    assert "demo-weak" in page.text


async def test_a_batch_runs_a_harness_for_every_model(yard: Service) -> None:
    body = {"models": ["demo-strong", "demo-weak"], "harnesses": [HARNESS], "budget_usd": 1, "runs_per_instance_type": 2}
    answer = await yard.client.post("/api/batches", json=body)
    assert answer.status_code == 202, answer.text
    batch_id = answer.json()["batch_id"]
    runs = (await yard.client.get("/api/container-runs", params={"batch_id": batch_id})).json()["items"]
    assert sorted((run["model"], run["kind"], run["budget_usd"]) for run in runs) == [
        *[("demo-strong", "harness", 0.25)] * 2,
        *[("demo-weak", "harness", 0.25)] * 2,
    ]
    for run in runs:
        await yard.until(run["id"], "completed")
    batch = (await yard.client.get(f"/api/batches/{batch_id}")).json()
    assert batch["state"] == "completed"
    page = await yard.client.get(f"/batches/{batch_id}", headers={"accept": "text/html"})
    assert page.status_code == 200
    twice = await yard.client.post("/api/batches", json={**body, "harnesses": [HARNESS, HARNESS]})
    assert (twice.status_code, "names of their own" in twice.text) == (422, True)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"image": "other:1"}, "not allowed"),
        ({"results": {"format": "csv"}}, "inspect"),
        ({"results": {"format": "jsonl", "paths": ["/etc/passwd"]}}, "relative path"),
        ({"results": {"format": "jsonl", "paths": ["../x"]}}, "relative path"),
        ({"results": {"format": "jsonl", "paths": ["**/**/**/x"]}}, "more than two"),
        ({"env": {"OPENAI_BASE_URL": "http://elsewhere"}}, "set by the service"),
        ({"env": {"MY_TOKEN": "x"}}, "looks like a secret"),
        ({"command": " "}, "say what to run"),
        ({"exit_codes": [256]}, "255"),
        ({"unknown": 1}, "unknown"),
    ],
)
async def test_what_cannot_be_run_is_refused(yard: Service, changed: dict[str, Any], words: str) -> None:
    body = {"kind": "harness", "model_id": "demo-strong", "harness": {**HARNESS, **changed}}
    answer = await yard.client.post("/api/container-runs", json=body)
    assert answer.status_code == 422, answer.text
    assert words in answer.text


async def test_a_runner_cannot_store_more_than_a_harness_may(yard: Service) -> None:
    refused: list[int] = []

    async def hostile(container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            await runner.claim()
            fine = {"benchmark": "sums", "problem_id": "p", "outcome": "passed"}
            for changed in (
                {"benchmark": "another"},
                {"problem_id": "p" * (MAX_ID_CHARS + 1)},
                {"problem_id": ""},
                {"sample_index": -1},
                {"answer": "x" * (MAX_TEXT_CHARS + 1)},
                {"tests": [{"index": 0, "outcome": "passed"}]},
            ):
                answer = await runner.send({"type": "progress", "seq": 1, "item": {**fine, **changed}})
                refused.append(answer.status_code)
            return 0
        finally:
            await runner.close()

    before = yard.engine.behaviour
    yard.engine.behaviour = hostile
    try:
        run_id = await submit(yard)
        await yard.until(run_id, "failed", "pending")
        await yard.client.post(f"/api/container-runs/{run_id}/cancel")
        await yard.until(run_id, "failed", "cancelled")
    finally:
        yard.engine.behaviour = before
    assert set(refused) == {422}
    assert (await yard.run(run_id))["progress"]["done"] == 0
