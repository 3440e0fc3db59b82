"""Evals through the API with runners that speak HTTP: what is stored once, what is counted, what is refused and why."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from orchestrator.db.session import DatabaseUnavailable
from orchestrator.engines.fake.container import FakeContainer
from tests.served import RunnerClient, Service
from tests.service.evals.eval_runner import (
    CODE,
    EvalRunner,
    body_of,
    executed,
    generated,
    job_done,
    judgement,
    new_set,
    with_traces,
)

pytestmark = pytest.mark.anyio


async def contradictions(service: Service, eval_id: str) -> list[str]:
    rows = (await service.client.get(f"/api/evals/{eval_id}/contradictions")).json()["items"]
    count = (await service.client.get(f"/api/evals/{eval_id}")).json()["contradiction_count"]
    assert count == len(rows), "the count and the view agree"
    return [row["trace_id"] for row in rows]


async def test_from_traces_to_contradictions(either_service: Service) -> None:
    service = either_service
    runner = service.engine.behaviour = EvalRunner(twice=True)
    set_id = await with_traces(service, "helpful")
    # When an eval is written
    row = await generated(service, set_id, description="whether it helps")
    # Then the runner was told of training labels only, and no id left the orchestrator
    labels = [line["label"] for line in runner.lines]
    assert (labels.count("positive"), labels.count("negative"), labels.count(None)) == (4, 4, 12)
    assert "shop-0-" not in json.dumps(runner.lines)
    assert (row["accuracy"]["n"], row["accuracy"]["right"], row["training_accuracy"]["n"]) == (4, 4, 8)
    assert row["accuracy"]["low"] < 1 == row["accuracy"]["high"]
    assert (row["code"], row["version"], row["description"], row["model"]) == (CODE, 1, "whether it helps", "demo-strong")
    assert sum(test["held_out"] for test in row["tests"]) == 4
    # And when it is executed, with every batch sent twice
    first = await executed(service, row["id"])
    assert first["estimated_count"] == 20
    seen = (await service.client.get(f"/api/evals/{row['id']}")).json()
    assert (seen["execution_count"], seen["passed_count"], seen["contradiction_count"]) == (20, 10, 0)
    # And when somebody changes their mind
    say = f"/api/eval-sets/{set_id}/feedback"
    rated = await service.client.post(say, json={"trace_id": "shop-0-000000", "rating": "negative", "note": "rude"})
    assert rated.json() == {"stored": 1, "positive": 5, "negative": 7}
    many = [{"trace_id": f"shop-0-{n:06d}", "rating": "positive"} for n in (13, 15, 14)]
    await service.client.post(say, json={"items": many})
    assert await contradictions(service, row["id"]) == ["shop-0-000000", "shop-0-000013", "shop-0-000015"]
    assert (await service.client.delete(f"{say}/shop-0-000013")).status_code == 204
    assert await contradictions(service, row["id"]) == ["shop-0-000000", "shop-0-000015"]
    # Then nothing is judged again unless it is new or forced, and counts stay true
    assert (await executed(service, row["id"]))["estimated_count"] == 0
    more = await service.client.post("/api/traces", params={"project": "helpful"}, content=body_of(3, labelled=0, seed=9))
    assert more.json()["imported"] == 3
    assert (await executed(service, row["id"]))["estimated_count"] == 3
    forced = await executed(service, row["id"], force=True, trace_ids=["shop-0-000000", "shop-0-000001"])
    assert forced["estimated_count"] == 2
    seen = (await service.client.get(f"/api/evals/{row['id']}")).json()
    assert (seen["execution_count"], seen["contradiction_count"]) == (23, 2)
    failed = (await service.client.get(f"/api/evals/{row['id']}/results", params={"passed": "false"})).json()["items"]
    assert {each["passed"] for each in failed} == {False}
    # And the same name again is another version
    service.clock.advance(1)
    second = await generated(service, set_id)
    assert (second["version"], [each["version"] for each in second["versions"]]) == (2, [1, 2])
    assert (await service.client.get("/api/evals", params={"eval_set_id": set_id, "limit": 1})).json()["next"]


async def test_a_jobs_stream_has_its_stages_and_replays(service: Service) -> None:
    service.engine.behaviour = EvalRunner()
    set_id = await with_traces(service, "streamed")
    answer = await service.client.post(f"/api/eval-sets/{set_id}/generate", json={"model_id": "demo-strong"})
    job_id = answer.json()["job_id"]
    assert answer.headers["location"] == f"/api/jobs/{job_id}"
    live = (await service.client.get(f"/api/jobs/{job_id}/stream")).text
    events = [dict(part.split(": ", 1) for part in event.splitlines()) for event in live.strip().split("\n\n")]
    told = [(event["event"], json.loads(event["data"])) for event in events if "data" in event]
    stages = [data["stage"] for _, data in told if data.get("stage")]
    assert list(dict.fromkeys(stages)) == [
        "fetching_traces",
        "calling_llm",
        "validating_code",
        "testing_accuracy",
        "saving_eval",
        "completed",
    ]
    percents = [data["percent"] for _, data in told if data.get("percent") is not None]
    assert percents == sorted(percents)
    assert [name for name, _ in told][-2:] == ["completed", "end"]
    tested = next(data for _, data in told if data.get("stage") == "testing_accuracy")
    assert (tested["tested"], tested["total"]) == (20, 20)
    ids = [event["id"] for event in events if "id" in event]
    again = (await service.client.get(f"/api/jobs/{job_id}/stream", headers={"last-event-id": ids[2]})).text
    assert [line[4:] for line in again.splitlines() if line.startswith("id: ")] == ids[3:]
    over = (await service.client.get(f"/api/jobs/{job_id}/stream", headers={"last-event-id": ids[-1]})).text
    assert "event: end" in over


async def test_an_attempt_that_dies_counts_no_trace_twice(service: Service) -> None:
    """Half of the results are stored, then the container is gone; the next attempt does the rest."""
    honest = EvalRunner()
    service.engine.behaviour = honest
    set_id = await with_traces(service, "dying")
    row = await generated(service, set_id)
    tries: list[int] = []

    async def dying(container: FakeContainer) -> int:
        if tries:
            tries.append(1)
            return await honest(container)
        tries.append(0)
        runner = RunnerClient(container.boot_line, "r")
        await runner.claim()
        lines = (await runner.http.get(f"/runner/runs/{runner.spec['run_id']}/traces")).text.splitlines()
        keys = [json.loads(line)["key"] for line in lines]
        await runner.send(runner.next("judgements", judgements=[judgement(key) for key in keys[:8]]))
        await runner.close()
        return 137

    service.engine.behaviour = dying
    answer = await service.client.post(f"/api/evals/{row['id']}/execute")
    service.clock.advance(0)
    async with asyncio.timeout(60):
        while (await service.client.get(f"/api/jobs/{answer.json()['job_id']}")).json()["status"] != "completed":
            await service.pass_time(1)
    assert tries == [0, 1]
    assert len(honest.lines) == 12, "what is stored is not asked for again"
    seen = (await service.client.get(f"/api/evals/{row['id']}")).json()
    assert seen["execution_count"] == 20


class Waiting(EvalRunner):
    """Stops before a given step until it is killed."""

    def __init__(self, stage: str) -> None:
        super().__init__()
        self.stage = stage
        self.reached = asyncio.Event()

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, "r")
        try:
            await runner.claim()
            await runner.send(runner.next("job_progress", stage=self.stage, percent=1))
            lines = (await runner.http.get(f"/runner/runs/{runner.spec['run_id']}/traces")).text.splitlines()
            keys = [json.loads(line)["key"] for line in lines]
            if self.stage == "saving_eval":
                await runner.send(runner.next("eval_written", code=CODE, judgements=[judgement(key) for key in keys]))
            if self.stage == "executing":
                await runner.send(runner.next("judgements", judgements=[judgement(key) for key in keys[:5]]))
            self.reached.set()
            while True:
                await container.checkpoint()
                await asyncio.sleep(0.02)
        finally:
            await runner.close()


@pytest.mark.parametrize(
    "stage", ["fetching_traces", "calling_llm", "validating_code", "testing_accuracy", "saving_eval", "executing"]
)
async def test_cancelled_in_any_stage_it_leaves_no_container_and_no_half_counts(service: Service, stage: str) -> None:
    service.engine.behaviour = EvalRunner()
    set_id = await with_traces(service, "cancelled")
    target, body = f"/api/eval-sets/{set_id}/generate", {"model_id": "demo-strong"}
    if stage == "executing":
        row = await generated(service, set_id)
        target, body = f"/api/evals/{row['id']}/execute", {}
    waiting = service.engine.behaviour = Waiting(stage)
    job_id = (await service.client.post(target, json=body)).json()["job_id"]
    async with asyncio.timeout(60):
        await waiting.reached.wait()
    busy = await service.client.delete(f"/api/eval-sets/{set_id}")
    assert (busy.status_code, busy.json()["code"]) == (409, "CONFLICT")
    assert (await service.client.post(f"/api/jobs/{job_id}/cancel")).status_code == 202
    job = await job_done(service, job_id, "cancelled")
    assert job["error"]["code"] == "CANCELLED"
    assert not await service.engine.list()
    evals = (await service.client.get("/api/evals", params={"eval_set_id": set_id})).json()["items"]
    if stage != "executing":
        assert evals == []
    else:
        stored = (await service.client.get(f"/api/evals/{row['id']}/results")).json()["items"]
        assert (evals[0]["execution_count"], evals[0]["passed_count"], len(stored)) == (5, 5, 5)
        assert evals[0]["contradiction_count"] == len(await contradictions(service, row["id"])) > 0
        service.engine.behaviour = rest = EvalRunner()
        again = await service.client.post(f"/api/jobs/{job_id}/retry")
        await job_done(service, again.json()["job_id"], "completed")
        assert len(rest.lines) == 15
    assert (await service.client.delete(f"/api/eval-sets/{set_id}")).status_code == 204
    assert (await service.client.get(f"/api/jobs/{job_id}")).status_code == 200


async def refusing(container: FakeContainer) -> int:
    runner = RunnerClient(container.boot_line, "r")
    await runner.claim()
    why = {"reason": "eval_refused", "message": "it is constant", "code": "INVALID_CODE"}
    await runner.send(runner.next("failed", **why))
    await runner.close()
    return 4


async def test_a_refused_eval_is_no_eval_and_says_why(service: Service) -> None:
    service.engine.behaviour = refusing
    set_id = await with_traces(service, "refused")
    answer = await service.client.post(f"/api/eval-sets/{set_id}/generate", json={"model_id": "demo-eval-constant"})
    job = await job_done(service, answer.json()["job_id"], "failed")
    assert (job["error"]["code"], job["error"]["message"], job["dead_letter"]) == ("INVALID_CODE", "it is constant", False)
    stream = (await service.client.get(f"/api/jobs/{job['id']}/stream")).text
    assert "event: failed" in stream
    assert '"code":"INVALID_CODE"' in stream
    assert (await service.client.get("/api/evals", params={"eval_set_id": set_id})).json()["items"] == []
    slugs = [each["slug"] for each in (await service.client.get("/api/models")).json()["items"]]
    assert "demo-eval-constant" not in slugs


async def until_given_up(service: Service, job_id: str) -> None:
    async with asyncio.timeout(60):
        while (await service.client.get(f"/api/jobs/{job_id}")).json()["status"] != "failed":
            await service.pass_time(2)


async def dead_letters(service: Service) -> list[str]:
    """As the list has them; the metric must agree."""
    listed = (await service.client.get("/api/jobs", params={"dead_letter": "true"})).json()["items"]
    figures = (await service.stranger.get("/metrics")).text
    assert f'benchyard_dead_letters{{kind="eval_generate"}} {len(listed)}.0' in figures
    return [each["id"] for each in listed]


async def test_dead_letters_are_settled_by_a_retry_that_completes_or_by_a_person(service: Service) -> None:
    async def dead(container: FakeContainer) -> int:
        return 1

    # Given three that were given up, the second a retry of the first
    service.engine.behaviour = dead
    set_id = await with_traces(service, "settled")
    ids = []
    for path in (f"/api/eval-sets/{set_id}/generate", "/api/jobs/{}/retry", f"/api/eval-sets/{set_id}/generate"):
        body = {"model_id": "demo-strong"} if "generate" in path else None
        answer = await service.client.post(path.format(*ids), json=body)
        assert answer.status_code == 202, answer.text
        ids.append(answer.json()["job_id"])
        await until_given_up(service, ids[-1])
        service.clock.advance(1)
    first, second, third = ids
    assert await dead_letters(service) == [third, second, first]
    # When a retry of the second is under way, it is none the better; when it completes, both are settled
    service.engine.behaviour = EvalRunner()
    retry = (await service.client.post(f"/api/jobs/{second}/retry")).json()["job_id"]
    await service.until(retry, "completed")
    assert await dead_letters(service) == [third]
    for job_id in (first, second):
        job = (await service.client.get(f"/api/jobs/{job_id}")).json()
        assert (job["status"], job["dead_letter"], job["succeeded_by"]) == ("failed", False, retry)
    refused = await service.client.post(f"/api/jobs/{first}/dismiss")
    assert (refused.status_code, f"its retry {retry} completed" in refused.json()["detail"]) == (409, True)
    # The third is dismissed from the page, and dismissing it again is harmless
    assert f"/jobs/{third}/dismiss" in (await service.client.get("/jobs?dead=1", headers={"accept": "text/html"})).text
    dismissed = await service.client.post(f"/jobs/{third}/dismiss", headers={"accept": "text/html"})
    assert dismissed.status_code == 303, dismissed.text
    assert await dead_letters(service) == []
    again = await service.client.post(f"/api/jobs/{third}/dismiss")
    assert (again.status_code, again.json()["dead_letter"], again.json()["status"]) == (200, False, "failed")
    assert again.json()["dismissed_at"]
    wrong = await service.client.post(f"/api/jobs/{retry}/dismiss")
    assert (wrong.status_code, "not a dead letter" in wrong.json()["detail"]) == (409, True)
    assert (await service.client.post("/api/jobs/nothing/dismiss")).status_code == 404
    entries = (await service.client.get("/api/audit")).json()["items"]
    assert [each["object_id"] for each in entries if "dismiss" in each["action"] and each["status"] < 400] == [third, third]


async def test_three_attempts_without_progress_make_a_dead_letter(service: Service) -> None:
    async def dead(container: FakeContainer) -> int:
        return 1

    service.engine.behaviour = dead
    set_id = await with_traces(service, "dead")
    answer = await service.client.post(f"/api/eval-sets/{set_id}/generate", json={"model_id": "demo-strong"})
    job_id = answer.json()["job_id"]
    await until_given_up(service, job_id)
    letters = (await service.client.get("/api/jobs", params={"dead_letter": "true"})).json()["items"]
    assert [(each["id"], each["attempt"], each["dead_letter"]) for each in letters] == [(job_id, 3, True)]
    figures = (await service.stranger.get("/metrics")).text
    assert 'benchyard_jobs{kind="eval_generate",status="failed"} 1.0' in figures
    assert 'benchyard_dead_letters{kind="eval_generate"} 1.0' in figures


async def test_jobs_of_all_kinds_are_in_one_list(service: Service) -> None:
    service.engine.behaviour = EvalRunner()
    set_id = await with_traces(service, "kinds")
    row = await generated(service, set_id)
    service.clock.advance(1)
    await executed(service, row["id"])
    service.clock.advance(1)
    run_id = await service.new_run()
    jobs = (await service.client.get("/api/jobs")).json()["items"]
    assert [job["type"] for job in jobs] == ["benchmark", "eval_execute", "eval_generate"]
    only = (await service.client.get("/api/jobs", params={"type": "eval_execute", "status": "completed"})).json()["items"]
    assert [job["eval_id"] for job in only] == [row["id"]]
    assert only[0]["average_ms"] == 2.0
    runs = (await service.client.get("/api/container-runs")).json()["items"]
    assert [run["id"] for run in runs] == [run_id], "jobs about evals are not among the measurements"


LONG = "x" * 201
TARGETS: dict[str, tuple[str, str, Any, int, str, str]] = {
    "no name": ("POST", "/api/eval-sets", {}, 422, "VALIDATION_ERROR", "name"),
    "blank name": ("POST", "/api/eval-sets", {"name": "  "}, 422, "VALIDATION_ERROR", "name"),
    "nul": ("POST", "/api/eval-sets", {"name": "a\x00"}, 422, "VALIDATION_ERROR", "stored"),
    "unknown field": ("POST", "/api/eval-sets", {"name": "a", "nome": 1}, 422, "VALIDATION_ERROR", "nome"),
    "no set": ("GET", "/api/eval-sets/none", None, 404, "NOT_FOUND", "none"),
    "change no set": ("PATCH", "/api/eval-sets/none", {"name": "x"}, 404, "NOT_FOUND", "none"),
    "change nothing": ("PATCH", "/api/eval-sets/SET", {}, 422, "VALIDATION_ERROR", "at least one"),
    "delete no set": ("DELETE", "/api/eval-sets/none", None, 404, "NOT_FOUND", "none"),
    "taken": ("POST", "/api/eval-sets", {"name": "bad-input"}, 409, "CONFLICT", "bad-input"),
    "rating": ("POST", "/api/eval-sets/SET/feedback", {"trace_id": "x", "rating": "meh"}, 422, "VALIDATION_ERROR", "rating"),
    "no rating": ("POST", "/api/eval-sets/SET/feedback", {"trace_id": "x"}, 422, "VALIDATION_ERROR", "rating"),
    "both ways": (
        "POST",
        "/api/eval-sets/SET/feedback",
        {"trace_id": "x", "rating": "positive", "items": [{"trace_id": "x", "rating": "positive"}]},
        422,
        "VALIDATION_ERROR",
        "either",
    ),
    "no trace": ("POST", "/api/eval-sets/SET/feedback", {"trace_id": "x", "rating": "positive"}, 404, "NOT_FOUND", "'x'"),
    "feedback no set": (
        "POST",
        "/api/eval-sets/none/feedback",
        {"trace_id": "x", "rating": "positive"},
        404,
        "NOT_FOUND",
        "none",
    ),
    "few": ("POST", "/api/eval-sets/SET/generate", {"model_id": "demo-strong"}, 422, "INSUFFICIENT_EXAMPLES", "2 more"),
    "no model": ("POST", "/api/eval-sets/SET/generate", {"model_id": "gpt-0"}, 404, "NOT_FOUND", "gpt-0"),
    "no model named": ("POST", "/api/eval-sets/SET/generate", {}, 422, "VALIDATION_ERROR", "model_id"),
    "target": (
        "POST",
        "/api/eval-sets/SET/generate",
        {"model_id": "demo-strong", "target_accuracy": 2},
        422,
        "VALIDATION_ERROR",
        "target_accuracy",
    ),
    "type": (
        "POST",
        "/api/eval-sets/SET/generate",
        {"model_id": "demo-strong", "instance_type": "huge"},
        422,
        "VALIDATION_ERROR",
        "huge",
    ),
    "generate no set": ("POST", "/api/eval-sets/none/generate", {"model_id": "demo-strong"}, 404, "NOT_FOUND", "none"),
    "no eval": ("GET", "/api/evals/none", None, 404, "NOT_FOUND", "none"),
    "change no eval": ("PATCH", "/api/evals/none", {"name": "x"}, 404, "NOT_FOUND", "none"),
    "change code": ("PATCH", "/api/evals/none", {"code": "x"}, 404, "NOT_FOUND", "none"),
    "no code": ("PATCH", "/api/evals/none", {"code": ""}, 422, "VALIDATION_ERROR", "code"),
    "code and name": (
        "PATCH",
        "/api/evals/none",
        {"code": "x", "name": "y"},
        422,
        "VALIDATION_ERROR",
        "in two requests",
    ),
    "delete no trace": ("DELETE", "/api/traces/none", None, 404, "NOT_FOUND", "none"),
    "decide nothing": ("POST", "/api/evals/none/contradictions", {"trace_id": "x"}, 422, "VALIDATION_ERROR", "wrong"),
    "decide no eval": (
        "POST",
        "/api/evals/none/contradictions",
        {"trace_id": "x", "wrong": "eval"},
        404,
        "NOT_FOUND",
        "none",
    ),
    "delete no eval": ("DELETE", "/api/evals/none", None, 404, "NOT_FOUND", "none"),
    "execute no eval": ("POST", "/api/evals/none/execute", {}, 404, "NOT_FOUND", "none"),
    "trace_ids": ("POST", "/api/evals/none/execute", {"trace_ids": []}, 422, "VALIDATION_ERROR", "trace_ids"),
    "force": ("POST", "/api/evals/none/execute", {"force": "yes"}, 422, "VALIDATION_ERROR", "force"),
    "contradictions": ("GET", "/api/evals/none/contradictions", None, 404, "NOT_FOUND", "none"),
    "results": ("GET", "/api/evals/none/results", None, 404, "NOT_FOUND", "none"),
    "label alone": ("GET", "/api/traces?label=positive", None, 422, "VALIDATION_ERROR", "eval_set_id"),
    "label": ("GET", "/api/traces?label=perhaps", None, 422, "VALIDATION_ERROR", "label"),
    "traces of no set": ("GET", "/api/traces?eval_set_id=none", None, 404, "NOT_FOUND", "none"),
    "get no trace": ("GET", "/api/traces/none", None, 404, "NOT_FOUND", "none"),
    "format": ("POST", "/api/traces?format=csv", {"input": 1}, 422, "VALIDATION_ERROR", "format"),
    "import to no set": ("POST", "/api/traces?eval_set_id=none", {"input": 1}, 404, "NOT_FOUND", "none"),
    "no job": ("GET", "/api/jobs/none", None, 404, "NOT_FOUND", "none"),
    "stream no job": ("GET", "/api/jobs/none/stream", None, 404, "NOT_FOUND", "none"),
    "cancel no job": ("POST", "/api/jobs/none/cancel", None, 404, "NOT_FOUND", "none"),
    "retry no job": ("POST", "/api/jobs/none/retry", None, 404, "NOT_FOUND", "none"),
    "job type": ("GET", "/api/jobs?type=dance", None, 422, "VALIDATION_ERROR", "type"),
    "job status": ("GET", "/api/jobs?status=done", None, 422, "VALIDATION_ERROR", "status"),
    "limit": ("GET", "/api/evals?limit=0", None, 422, "VALIDATION_ERROR", "limit"),
    "long id": ("GET", f"/api/traces/{LONG}", None, 422, "VALIDATION_ERROR", "trace_id"),
}


@pytest.fixture(scope="module")
async def bad_set(shared_service: Service) -> str:
    return await new_set(shared_service, "bad-input")


@pytest.mark.parametrize("case", TARGETS)
async def test_bad_input_gives_a_clear_error(shared_service: Service, bad_set: str, case: str) -> None:
    method, path, body, status, code, word = TARGETS[case]
    answer = await shared_service.client.request(method, path.replace("SET", bad_set), json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert answer.json()["code"] == code
    assert word in answer.json()["detail"]


async def test_too_few_examples_say_how_many_are_needed(shared_service: Service) -> None:
    set_id = await with_traces(shared_service, "few", count=3, labelled=1, seed=77)
    answer = await shared_service.client.post(f"/api/eval-sets/{set_id}/generate", json={"model_id": "demo-strong"})
    assert answer.json()["needed"] == {"positive": 1, "negative": 2}
    assert "label 1 more positive and 2 more negative" in answer.json()["detail"]


async def test_lines_that_cannot_be_used_are_named(shared_service: Service) -> None:
    send = shared_service.client.post
    body = b'{"id": "n1", "input": "x"}\n{oops\n{"id": "n1", "input": "x"}\n{"id": "n1", "input": "other"}\n'
    answer = (await send("/api/traces", content=body)).json()
    assert (answer["imported"], answer["unchanged"], answer["left_out"]) == (1, 1, 2)
    assert [each["line"] for each in answer["left_out_lines"]] == [2, 4]
    again = await send("/api/traces", content=body)
    assert (again.json()["imported"], again.json()["unchanged"]) == (0, 2)
    useless = await send("/api/traces", content=b"{oops\n")
    assert (useless.status_code, useless.json()["code"]) == (422, "VALIDATION_ERROR")
    assert "line 1" in useless.json()["detail"]
    empty = await send("/api/traces", content=b"")
    assert empty.status_code == 422


async def test_a_runner_cannot_judge_what_is_not_its_own(service: Service) -> None:
    service.engine.behaviour = EvalRunner()
    row = await generated(service, await with_traces(service, "strange"))
    said: list[int] = []

    async def lying(container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, "r")
        await runner.claim()
        for key in (10**6, 1):
            event = {"type": "judgements", "seq": 1, "judgements": [judgement(key)]}
            said.append((await runner.send(event)).status_code)
        written = {"type": "eval_written", "seq": 2, "code": CODE, "judgements": []}
        said.append((await runner.send(written)).status_code)
        await runner.close()
        return 0

    service.engine.behaviour = lying
    answer = await service.client.post(f"/api/evals/{row['id']}/execute")
    async with asyncio.timeout(60):
        while len(said) < 3:
            await asyncio.sleep(0.02)
    assert said == [422, 200, 422]
    assert (await service.client.get(f"/api/evals/{row['id']}")).json()["execution_count"] == 1
    await service.client.post(f"/api/jobs/{answer.json()['job_id']}/cancel")


async def test_the_same_key_is_the_same_job(service: Service) -> None:
    service.engine.behaviour = EvalRunner()
    set_id = await with_traces(service, "keyed")
    path, key = f"/api/eval-sets/{set_id}/generate", {"idempotency-key": "k1"}
    first, again = [await service.client.post(path, json={"model_id": "demo-strong"}, headers=key) for _ in range(2)]
    assert first.json() == again.json()
    other = await service.client.post(path, json={"model_id": "demo-weak"}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "CONFLICT")
    job = await job_done(service, first.json()["job_id"], "completed")
    path = f"/api/evals/{job['eval_id']}/execute"
    first, again = [await service.client.post(path, headers=key) for _ in range(2)]
    assert (first.json(), first.json()["estimated_count"]) == (again.json(), 20)
    await job_done(service, first.json()["job_id"], "completed")
    refused = await service.client.post(f"/api/container-runs/{job['id']}/retry")
    assert (refused.status_code, "/api/jobs/" in refused.json()["detail"]) == (409, True)


async def test_a_database_that_is_away_is_an_error_of_its_own(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> None:
        raise DatabaseUnavailable("disk I/O error")

    monkeypatch.setattr(service.services.db, "read", away)
    for path in ("/api/eval-sets", "/api/traces", "/api/evals", "/api/jobs"):
        answer = await service.client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (503, "DATABASE_ERROR")
        assert answer.headers["retry-after"]
