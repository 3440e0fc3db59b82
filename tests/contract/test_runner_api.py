"""The runner API from the outside: tokens, foreign runs, old attempts, wrong versions, and bodies that make no sense."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from typing import Any

import httpx
import pytest

from orchestrator.engines.fake.container import FakeContainer
from runner.contract.events import EventAck
from runner.contract.run_spec import ClaimAnswer, Problem
from tests.served import RunnerClient, Service

pytestmark = pytest.mark.anyio


async def waits(container: FakeContainer) -> int:
    await container.terminate.wait()
    return 143


@pytest.fixture
def service(shared_service: Service) -> Service:
    return shared_service


@pytest.fixture
async def runner(service: Service):  # type: ignore[no-untyped-def]
    """A runner whose container waits: the test speaks for it."""
    it = await started(service)
    yield it
    await it.close()


async def started(service: Service) -> RunnerClient:
    service.engine.behaviour = waits
    run_id = await service.new_run()
    name = f"benchyard-run-{run_id}-a1"
    async with asyncio.timeout(60):
        while name not in service.engine.containers or not service.engine.containers[name].boot_line:
            await asyncio.sleep(0.01)
    return RunnerClient(service.engine.containers[name].boot_line)


async def test_claim_problems_events_artefacts(service: Service, runner: RunnerClient) -> None:
    answer = await runner.claim()
    assert answer.json()["action"] == "run"
    assert (await runner.claim()).json() == answer.json(), "the answer was lost: told again"
    run_id = runner.spec["run_id"]
    assert runner.spec["run_token"] == runner.token
    raw = await runner.http.get(f"/runner/runs/{run_id}/problems")
    problems = [Problem.model_validate_json(line) for line in raw.text.splitlines()]
    assert [problem.problem_id for problem in problems] == runner.spec["benchmarks"][0]["problem_ids"]
    assert raw.headers["content-encoding"] == "gzip"
    first = runner.open_items()[0]
    ack = EventAck.model_validate((await runner.send(runner.next("progress", item={**first, "outcome": "passed"}))).json())
    assert (ack.ack_seq, ack.desired) == (1, "run")
    left = (await runner.http.get(f"/runner/runs/{run_id}/problems")).text.splitlines()
    assert len(left) == 2, "only what is still open"
    stored = await runner.http.put(f"/runner/runs/{run_id}/artefacts/trace.json.gz", content=gzip.compress(b"{}"))
    assert stored.status_code == 204
    assert [artefact["name"] for artefact in (await service.run(run_id))["artefacts"]] == ["trace.json.gz"]


@pytest.mark.parametrize(
    "authorization",
    [None, "Bearer wrong", "Bearer", "Basic eDp5", "Bearer the-right-token", "bearer \xff\xfe", "Bearer " + "x" * 4000],
    ids=["none", "wrong", "empty", "basic", "the API's token", "not ASCII", "very long"],
)
async def test_wrong_tokens(service: Service, runner: RunnerClient, authorization: str | None) -> None:
    await runner.claim()
    run_id = runner.spec["run_id"]
    async with httpx.AsyncClient(base_url=runner.http.base_url) as stranger:
        headers = {} if authorization is None else {"authorization": authorization.encode("latin-1")}
        calls = [
            ("POST", "/runner/claim", {"runner_id": "x", "contract_version": 1, "instance_type": "i", "engine": "e"}),
            ("POST", f"/runner/runs/{run_id}/events", {"attempt": 1, "events": []}),
            ("GET", f"/runner/runs/{run_id}/problems", None),
            ("PUT", f"/runner/runs/{run_id}/artefacts/a", None),
        ]
        for method, path, body in calls:
            answer = await stranger.request(method, path, json=body, headers=headers)
            assert answer.status_code == 401, (method, path, answer.text)
            assert answer.json()["code"] == "UNAUTHORIZED"
    assert (await service.run(run_id))["progress"]["done"] == 0


async def test_the_token_of_another_run(service: Service, runner: RunnerClient) -> None:
    other = await started(service)
    try:
        await runner.claim()
        await other.claim()
        foreign = other.spec["run_id"]
        assert (await runner.send(run_id=foreign)).status_code == 401
        assert (await runner.http.get(f"/runner/runs/{foreign}/problems")).status_code == 401
        assert (await runner.http.put(f"/runner/runs/{foreign}/artefacts/a", content=b"x")).status_code == 401
        assert (
            await service.client.get("/api/fleet", headers={"authorization": f"Bearer {runner.token}"})
        ).status_code == 401
    finally:
        await other.close()


async def test_an_old_attempt_must_stop(service: Service, runner: RunnerClient) -> None:
    await runner.claim()
    run_id = runner.spec["run_id"]
    service.engine.crash(f"benchyard-run-{run_id}-a1")
    async with asyncio.timeout(60):
        while (await service.run(run_id))["attempts"][0]["ended_at"] is None:
            await service.pass_time(0.2)
    assert (await runner.send(runner.next("heartbeat"))).status_code in (401, 409)
    assert (await runner.claim()).status_code in (401, 409)


async def test_events_of_another_attempt(runner: RunnerClient) -> None:
    await runner.claim()
    answer = await runner.send(runner.next("heartbeat"), attempt=2)
    assert answer.status_code == 409
    assert "must" in answer.json()["detail"] or "attempt" in answer.json()["detail"]


async def test_another_contract_version_is_refused_with_what_to_do(runner: RunnerClient) -> None:
    answer = await runner.claim(contract_version=99)
    assert answer.status_code == 426
    assert "benchyard images build" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["..", ".hidden", "a/b", "%2e%2e%2fx", "x" * 101, "a\\b", "a%00b"])
async def test_artefact_names(runner: RunnerClient, name: str) -> None:
    await runner.claim()
    answer = await runner.http.put(f"/runner/runs/{runner.spec['run_id']}/artefacts/{name}", content=b"x")
    assert answer.status_code in (404, 405, 422)


def scrambled(rng: random.Random, value: Any) -> Any:
    """The body with one thing in it replaced by something else."""
    odd = [None, -1, 0, 2**80, 1e308, "", "\x00", "é" * 50, [], {}, True, [[]], "9" * 400]
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        return {**value, key: scrambled(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        return [*value[:place], scrambled(rng, value[place]), *value[place + 1 :]]
    return rng.choice(odd)


async def test_bodies_that_make_no_sense_are_never_a_5xx(service: Service, runner: RunnerClient) -> None:
    await runner.claim()
    run_id = runner.spec["run_id"]
    item = {**runner.open_items()[0], "outcome": "passed", "usage": {"cpu_s": 1.0, "peak_bytes": 1}, "tests_total": 1}
    item["calls"] = [{"call_key": "k", "input_tokens": 1, "output_tokens": 1}]
    good = {
        "attempt": 1,
        "events": [
            {"type": "stage", "seq": 1, "stage": "running", "facts": {"a": [1]}},
            {"type": "heartbeat", "seq": 2, "waiting_for": "x"},
            {"type": "progress", "seq": 3, "item": item},
            {"type": "log", "seq": 4, "message": "m"},
        ],
    }
    claim = {"runner_id": "r1", "contract_version": 1, "instance_type": "i", "engine": "e"}
    rng = random.Random(7)
    for _ in range(150):
        answer = await runner.http.post(f"/runner/runs/{run_id}/events", json=scrambled(rng, good))
        assert answer.status_code < 500, answer.text
        answer = await runner.http.post("/runner/claim", json=scrambled(rng, claim))
        assert answer.status_code < 500, answer.text
    for body in (
        b'{"attempt": 1, "events": [{"type": "stage", "seq": 1, "stage": "running", "facts": {"x": NaN}}]}',
        b"[" * 50_000,
    ):
        answer = await runner.http.post(f"/runner/runs/{run_id}/events", content=body)
        assert answer.status_code < 500, answer.text
    assert (await service.client.get(f"/api/container-runs/{run_id}")).status_code == 200
    assert (await service.client.get(f"/api/container-runs/{run_id}/items")).status_code == 200


def test_the_answers_are_of_the_contract() -> None:
    from pydantic import TypeAdapter

    adapter = TypeAdapter[Any](ClaimAnswer)
    assert adapter.validate_python(json.loads('{"action": "wait", "retry_after_s": 1}')).action == "wait"
