"""Who is wrong where an eval contradicts people; code by hand; traces that are removed: counts are true at every step."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from orchestrator.engines.fake.container import FakeContainer
from tests.served import RunnerClient, Service
from tests.service.evals.eval_runner import CODE, EvalRunner, executed, generated, job_done, with_traces

pytestmark = pytest.mark.anyio
TURNED = ("shop-0-000000", "shop-0-000001", "shop-0-000002")


async def contradicted(service: Service, name: str) -> tuple[str, str]:
    """A set and its eval, which contradicts three labels: two that were positive, one that was negative."""
    set_id = await with_traces(service, name)
    row = await generated(service, set_id)
    await executed(service, row["id"])
    for number, trace_id in enumerate(TURNED):
        body = {"trace_id": trace_id, "rating": "positive" if number == 1 else "negative"}
        assert (await service.client.post(f"/api/eval-sets/{set_id}/feedback", json=body)).status_code == 200
    return set_id, row["id"]


async def counts(service: Service, eval_id: str) -> tuple[int, int]:
    row = (await service.client.get(f"/api/evals/{eval_id}")).json()
    return row["contradiction_count"], row["disputed_count"]


async def listed(service: Service, eval_id: str, **query: Any) -> list[str]:
    answer = await service.client.get(f"/api/evals/{eval_id}/contradictions", params=query)
    return [each["trace_id"] for each in answer.json()["items"]]


async def test_the_eval_or_the_label_is_wrong(either_service: Service) -> None:
    service = either_service
    runner = service.engine.behaviour = EvalRunner()
    set_id, eval_id = await contradicted(service, "decided")
    say = f"/api/evals/{eval_id}/contradictions"
    # When the eval is wrong about one, and the label of another was
    stored = (await service.client.post(say, json={"trace_id": TURNED[0], "wrong": "eval"})).json()
    assert (stored["rating"], stored["contradiction_count"], stored["disputed_count"]) == ("negative", 3, 1)
    stored = (await service.client.post(say, json={"trace_id": TURNED[1], "wrong": "label"})).json()
    assert (stored["rating"], stored["contradiction_count"], stored["disputed_count"]) == ("negative", 2, 1)
    assert (stored["positive"], stored["negative"]) == (4, 8)
    # Then the lists tell them apart, and what is not contradicted cannot be decided
    assert await listed(service, eval_id, disputed=False) == [TURNED[2]]
    assert await listed(service, eval_id, disputed=True) == [TURNED[0]]
    refused = await service.client.post(say, json={"trace_id": TURNED[1], "wrong": "eval"})
    assert (refused.status_code, refused.json()["code"]) == (409, "CONFLICT")
    # And the next generation learns from the one about which the eval is wrong, whatever the draw
    for seed in range(3):
        service.clock.advance(1)
        await generated(service, set_id, seed=seed)
        lessons = [line for line in runner.lines if line["disputed"]]
        assert [(line["label"], line["disputed"]) for line in lessons] == [("negative", "good (so)")]
    # And both can be taken back
    await service.client.post(say, json={"trace_id": TURNED[0], "wrong": "nobody"})
    assert await counts(service, eval_id) == (2, 0)
    await service.client.post(say, json={"trace_id": TURNED[2], "wrong": "eval"})
    flip = {"trace_id": TURNED[2], "rating": "positive"}
    await service.client.post(f"/api/eval-sets/{set_id}/feedback", json=flip)
    assert await counts(service, eval_id) == (1, 0)
    flip["rating"] = "negative"
    await service.client.post(f"/api/eval-sets/{set_id}/feedback", json=flip)
    assert await counts(service, eval_id) == (2, 0), "a label that was changed is looked at anew"
    found = (await service.client.get("/api/traces", params={"eval_set_id": set_id, "label": "contradicted"})).json()
    assert found["items"] == [], "the newest eval has judged nothing"


async def test_a_trace_goes_with_all_that_was_said_of_it(either_service: Service) -> None:
    service = either_service
    service.engine.behaviour = EvalRunner()
    _, eval_id = await contradicted(service, "removed")
    await service.client.post(f"/api/evals/{eval_id}/contradictions", json={"trace_id": TURNED[0], "wrong": "eval"})
    # While a job works on it, it stays
    waits = asyncio.Event()
    service.engine.behaviour = lambda container: waits.wait()
    job_id = (await service.client.post(f"/api/evals/{eval_id}/execute", json={"force": True})).json()["job_id"]
    refused = await service.client.delete(f"/api/traces/{TURNED[0]}")
    assert (refused.status_code, job_id in refused.json()["detail"]) == (409, True)
    await service.client.post(f"/api/jobs/{job_id}/cancel")
    waits.set()
    await job_done(service, job_id, "cancelled", "failed")
    # When it is removed, the counts follow, and a retry does what is left
    assert (await service.client.delete(f"/api/traces/{TURNED[0]}")).status_code == 204
    row = (await service.client.get(f"/api/evals/{eval_id}")).json()
    assert (row["execution_count"], row["passed_count"], row["contradiction_count"], row["disputed_count"]) == (19, 9, 2, 0)
    assert (await service.client.get(f"/api/traces/{TURNED[0]}")).status_code == 404
    service.engine.behaviour = EvalRunner()
    again = (await service.client.post(f"/api/jobs/{job_id}/retry")).json()["job_id"]
    assert (await job_done(service, again, "completed"))["progress"] == {"done": 19, "total": 19}


async def test_code_by_hand_is_tested_before_it_is_a_version(service: Service) -> None:
    runner = service.engine.behaviour = EvalRunner()
    set_id = await with_traces(service, "by-hand")
    row = await generated(service, set_id, seed=7)
    place = f"/api/evals/{row['id']}"
    for code, word in {"def evaluate(:": "not valid Python", "import os": "imports os", "x = 1": "no function"}.items():
        refused = await service.client.patch(place, json={"code": code})
        assert (refused.status_code, refused.json()["code"]) == (422, "INVALID_CODE")
        assert word in refused.json()["detail"]
    service.clock.advance(1)
    accepted = await service.client.patch(place, json={"code": CODE + "# mine\n", "description": "by hand"})
    assert accepted.status_code == 202
    job = await job_done(service, accepted.json()["job_id"], "completed")
    assert (runner.spec["eval"]["draft"], runner.spec["eval"]["seed"]) == (CODE + "# mine\n", 7)
    made = (await service.client.get(f"/api/evals/{job['eval_id']}")).json()
    assert (made["version"], made["model"], made["description"]) == (2, None, "by hand")
    assert (await service.client.get(place)).json()["code"] == CODE


async def test_refused_answers_are_told_while_the_job_goes_on(service: Service) -> None:
    said = {"turn": 0, "code": "def evaluate(:", "problem": "it is not valid Python\x00"}
    seen = asyncio.Event()

    async def refuses(container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        assert (await runner.claim()).status_code == 200
        await runner.send(runner.next("job_progress", stage="validating_code", percent=60, round=said))
        await seen.wait()
        await runner.send(runner.next("failed", reason="eval_refused", message="no answer could be used"))
        await runner.close()
        return 1

    service.engine.behaviour = refuses
    set_id = await with_traces(service, "rounds")
    made = await service.client.post(f"/api/eval-sets/{set_id}/generate", json={"model_id": "demo-strong"})
    job_id = made.json()["job_id"]
    async with asyncio.timeout(10):
        while not (rounds := (await service.client.get(f"/api/jobs/{job_id}")).json()["rounds"]):
            await asyncio.sleep(0.02)
    assert (rounds[0]["code"], rounds[0]["problem"]) == ("def evaluate(:", "it is not valid Python\ufffd")
    seen.set()
    await job_done(service, job_id, "failed")
    live = (await service.client.get(f"/api/jobs/{job_id}/stream")).text
    told = [json.loads(line[6:]) for line in live.splitlines() if line.startswith("data: {")]
    (round_,) = [data["round"] for data in told if "round" in data]
    assert (round_["problem"], "code" in round_) == ("it is not valid Python\ufffd", False)


async def test_a_text_is_found_in_any_field(service: Service) -> None:
    set_id = await with_traces(service, "searched", count=20, labelled=4)
    deep = {"id": "deep", "input": "x", "steps": [{"output": {"said": 'He "SAID" it\nloud'}}]}
    await service.client.post("/api/traces", params={"project": "searched"}, content=json.dumps(deep))

    async def found(**query: Any) -> list[str]:
        answer = await service.client.get("/api/traces", params={"eval_set_id": set_id, **query})
        return [each["id"] for each in answer.json()["items"]]

    assert await found(text='"said" it\nLOUD') == ["deep"]
    assert await found(text="SHOP-0-00001", label="none") == [f"shop-0-{number:06d}" for number in range(10, 20)]
    first = (await service.client.get("/api/traces", params={"eval_set_id": set_id, "text": "shop", "limit": 3})).json()
    assert [each["id"] for each in first["items"]][-1] == "shop-0-000002"
    assert await found(text="shop", after=first["next"], limit=1) == ["shop-0-000003"]
