"""Runners of jobs about evals that speak HTTP to the served application, one step at a time."""

from __future__ import annotations

import json
from typing import Any

import httpx

from orchestrator.engines.fake.container import FakeContainer
from orchestrator.traces.sample import sample_traces
from tests.served import RunnerClient, Service

CODE = "def evaluate(trace):\n    return {'passed': True, 'score': 1.0, 'reason': ''}\n"


def judgement(key: int, passed: bool | None = True, **more: Any) -> dict[str, Any]:
    return {"key": key, "passed": passed, "score": 1.0 if passed else 0.0, "reason": "so", "wall_ms": 2.0, **more}


def verdict(line: dict[str, Any]) -> bool:
    """As a good eval would judge the sample traces."""
    output = line["trace"]["output"]
    return (
        bool(output) and "sorry" not in output and "Friday" not in output and "wrong" not in output and "know" not in output
    )


class EvalRunner:
    """Writes or executes an eval honestly; `sent` are the answers to its batches. `twice` sends every batch again."""

    def __init__(self, *, twice: bool = False) -> None:
        self.twice = twice
        self.spec: dict[str, Any] = {}
        self.lines: list[dict[str, Any]] = []
        self.sent: list[httpx.Response] = []

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            assert (await runner.claim()).status_code == 200
            self.spec = runner.spec
            answer = await runner.http.get(f"/runner/runs/{runner.spec['run_id']}/traces")
            self.lines = [json.loads(line) for line in answer.content.splitlines()]
            if runner.spec["kind"] == "eval_generate":
                await self._generate(runner)
            else:
                await self._execute(runner, container)
            return 0
        finally:
            await runner.close()

    async def _post(self, runner: RunnerClient, *events: dict[str, Any]) -> None:
        for _ in range(2 if self.twice else 1):
            self.sent.append(await runner.send(*events))

    async def _generate(self, runner: RunnerClient) -> None:
        for stage, percent in (("fetching_traces", 0), ("calling_llm", 20), ("validating_code", 60)):
            await self._post(runner, runner.next("job_progress", stage=stage, percent=percent))
        total = len(self.lines)
        await self._post(runner, runner.next("job_progress", stage="testing_accuracy", percent=70, done=total, total=total))
        judgements = [judgement(line["key"], verdict(line)) for line in self.lines]
        await self._post(runner, runner.next("eval_written", code=CODE, judgements=judgements))
        await self._post(runner, runner.next("complete", items=1))

    async def _execute(self, runner: RunnerClient, container: FakeContainer) -> None:
        for start in range(0, len(self.lines), 7):
            await container.checkpoint()
            part = [judgement(line["key"], verdict(line)) for line in self.lines[start : start + 7]]
            await self._post(runner, runner.next("judgements", judgements=part))
        await self._post(runner, runner.next("complete", items=len(self.lines)))


def body_of(count: int, *, labelled: int, seed: int = 0) -> bytes:
    rows = list(sample_traces(count, seed))
    for row in rows[labelled:]:
        row.pop("label")
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


async def new_set(service: Service, name: str, **fields: Any) -> str:
    answer = await service.client.post("/api/eval-sets", json={"name": name, "description": "It helps.", **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def with_traces(service: Service, name: str, count: int = 20, labelled: int = 12, seed: int = 0) -> str:
    """A set with its own project and that many traces."""
    set_id = await new_set(service, name, project=name)
    query = {"eval_set_id": set_id, "project": name}
    answer = await service.client.post("/api/traces", params=query, content=body_of(count, labelled=labelled, seed=seed))
    assert answer.status_code == 201, answer.text
    return set_id


async def job_done(service: Service, job_id: str, *statuses: str) -> dict[str, Any]:
    await service.until(job_id, *statuses)
    answer = await service.client.get(f"/api/jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    job: dict[str, Any] = answer.json()
    return job


async def generated(service: Service, set_id: str, **fields: Any) -> dict[str, Any]:
    answer = await service.client.post(f"/api/eval-sets/{set_id}/generate", json={"model_id": "demo-strong", **fields})
    assert answer.status_code == 202, answer.text
    job = await job_done(service, answer.json()["job_id"], "completed")
    row: dict[str, Any] = (await service.client.get(f"/api/evals/{job['eval_id']}")).json()
    return row


async def executed(service: Service, eval_id: str, **fields: Any) -> dict[str, Any]:
    answer = await service.client.post(f"/api/evals/{eval_id}/execute", json=fields)
    assert answer.status_code == 202, answer.text
    await job_done(service, answer.json()["job_id"], "completed")
    return dict(answer.json())
