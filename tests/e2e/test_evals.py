"""Evals as people use them: a real service, real containers, the command line and the API, no key and no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.traces.sample import sample_traces
from tests.faults.service import TOKEN, Service, docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]

MANY = 6000
QUICK = ("--instance-type", "standard-2")
STRONG = {"model_id": "demo-strong", "instance_type": "standard-2"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    it = Service(tmp_path_factory.mktemp("evals") / "data", reconcile_s=0.5)
    it.start()
    yield it
    it.close()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("files") / "traces.jsonl"
    rows = list(sample_traces(60))
    for row in rows[40:]:
        row.pop("label")
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{oops\n")
    return file


def benchyard(service: Service, *words: str, code: int = 0) -> Any:
    env = {**os.environ, "BENCHYARD_URL": service.url, "BENCHYARD_TOKEN": TOKEN}
    command = [sys.executable, "-m", "orchestrator.cli", *words, "--json"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1200, check=False)
    assert ended.returncode == code, f"{words}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return json.loads(ended.stdout)


def over(service: Service, job_id: str, within_s: float = 90) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        job: dict[str, Any] = service.client.get(f"/api/jobs/{job_id}").json()
        return job if job["status"] in ("completed", "failed", "cancelled") else None

    found: dict[str, Any] = wait_for(ended, within_s, f"job {job_id} is over; log: {service.log_tail()}")
    return found


def no_container(service: Service) -> None:
    wait_for(lambda: not service.containers(all_states=True), 60, "no container is left")


def test_the_whole_story(service: Service, traces: Path) -> None:
    # Given traces with opinions, through the command line
    made = benchyard(service, "evals", "create", "helpful", "--description", "The answer helps with what was asked.")
    done = benchyard(service, "traces", "import", str(traces), "--eval-set", "helpful")
    assert (done["imported"], done["labelled"], done["left_out_lines"][0]["line"]) == (60, 40, 61)
    # When a model writes an eval that needs a repair, and another one that does not
    weak = benchyard(service, "evals", "generate", "helpful", "-m", "demo-weak", "--name", "weak", *QUICK)
    assert [each["problem"][:22] for each in weak["rounds"]][:1] == ["it is not valid Python"]
    row = benchyard(service, "evals", "generate", "helpful", "-m", "demo-strong", *QUICK)
    assert (row["accuracy"]["estimate"], row["accuracy"]["n"], row["version"]) == (1.0, 16, 1)
    assert row["accuracy"]["low"] < 0.9
    # And it judges all traces
    ran = benchyard(service, "evals", "execute", "helpful")
    assert (ran["eval"]["execution_count"], ran["eval"]["passed_count"]) == (60, 30)
    # Then nobody disagrees until somebody does
    assert benchyard(service, "evals", "contradictions", "helpful") == []
    opinion = {"trace_id": "shop-0-000002", "rating": "negative"}
    assert service.client.post(f"/api/eval-sets/{made['id']}/feedback", json=opinion).status_code == 200
    (against,) = benchyard(service, "evals", "contradictions", "helpful")
    assert (against["trace_id"], against["passed"], against["rating"]) == ("shop-0-000002", True, "negative")
    assert benchyard(service, "evals", "show", "helpful")["contradiction_count"] == 1
    jobs = benchyard(service, "jobs", "--type", "eval_generate")
    assert [job["status"] for job in jobs] == ["completed", "completed"]
    no_container(service)


def test_what_is_not_fit_is_contained_and_refused(service: Service, traces: Path) -> None:
    answer = service.client.post("/api/eval-sets", json={"name": "refused", "description": "It helps."})
    set_id = answer.json()["id"]
    service.client.post("/api/traces", params={"eval_set_id": set_id}, content=traces.read_bytes())
    expected = {
        "demo-eval-syntax": ("INVALID_CODE", "not valid Python"),
        "demo-eval-import": ("INVALID_CODE", "imports subprocess"),
        "demo-eval-constant": ("INVALID_CODE", "constant"),
        "demo-eval-hostile": ("EXECUTION_ERROR", "no verdict"),
    }
    ids = {}
    for model in expected:
        accepted = service.client.post(
            f"/api/eval-sets/{set_id}/generate", json={"model_id": model, "instance_type": "basic"}
        )
        assert accepted.status_code == 202, accepted.text
        ids[model] = accepted.json()["job_id"]
    for model, (code, words) in expected.items():
        job = over(service, ids[model])
        assert (job["status"], job["error"]["code"], job["error"]["reason"]) == ("failed", code, "eval_refused"), job
        assert words in job["error"]["message"]
        assert job["attempt"] == 1
    assert service.client.get("/api/evals", params={"eval_set_id": set_id}).json()["items"] == []
    assert service.client.get("/readyz").status_code == 200
    no_container(service)


def test_an_orchestrator_that_is_killed_counts_no_trace_twice(service: Service) -> None:
    made = service.client.post("/api/eval-sets", json={"name": "many", "project": "many"}).json()
    body = "".join(json.dumps(row) + "\n" for row in sample_traces(MANY, seed=5))
    query = {"eval_set_id": made["id"], "project": "many"}
    imported = service.client.post("/api/traces", params=query, content=body, timeout=600).json()
    assert imported["imported"] == MANY
    job_id = service.client.post(f"/api/eval-sets/{made['id']}/generate", json=STRONG).json()["job_id"]
    eval_id = over(service, job_id)["eval_id"]
    # When it is killed in the middle of an execution
    job_id = service.client.post(f"/api/evals/{eval_id}/execute").json()["job_id"]
    wait_for(lambda: service.client.get(f"/api/jobs/{job_id}").json()["progress"]["done"] > 200, 60, "it judges", 0.02)
    service.kill()
    service.start()
    # Then the job completes, and every trace is there once
    job = over(service, job_id)
    assert (job["status"], job["progress"]) == ("completed", {"done": MANY, "total": MANY})
    row = service.client.get(f"/api/evals/{eval_id}").json()
    assert (row["execution_count"], row["passed_count"], row["contradiction_count"]) == (MANY, MANY // 2, 0)
    no_container(service)


def test_a_job_that_is_cancelled_stops_for_good(service: Service) -> None:
    eval_id = service.client.get("/api/evals", params={"name": "many"}).json()["items"][0]["id"]
    job_id = service.client.post(f"/api/evals/{eval_id}/execute", json={"force": True}).json()["job_id"]
    wait_for(lambda: service.client.get(f"/api/jobs/{job_id}").json()["status"] == "running", 60, "it runs", 0.02)
    docker("update", "--cpus", "0.1", service.container(job_id))  # so that the cancel comes in the middle
    wait_for(lambda: service.client.get(f"/api/jobs/{job_id}").json()["progress"]["done"] > 0, 300, "it judges", 0.02)
    assert service.client.post(f"/api/jobs/{job_id}/cancel").status_code == 202
    job = over(service, job_id)
    assert job["status"] == "cancelled"
    assert 0 < job["progress"]["done"] < MANY
    assert service.client.get(f"/api/evals/{eval_id}").json()["execution_count"] == MANY
    no_container(service)


def test_a_runner_that_is_killed_counts_no_trace_twice(service: Service) -> None:
    eval_id = service.client.get("/api/evals", params={"name": "many"}).json()["items"][0]["id"]
    job_id = service.client.post(f"/api/evals/{eval_id}/execute", json={"force": True}).json()["job_id"]
    wait_for(lambda: service.client.get(f"/api/jobs/{job_id}").json()["progress"]["done"] > 200, 60, "it judges", 0.02)
    docker("kill", service.container(job_id))
    job = over(service, job_id)
    assert (job["status"], job["attempt"], job["progress"]["done"]) == ("completed", 2, MANY)
    row = service.client.get(f"/api/evals/{eval_id}").json()
    assert (row["execution_count"], row["passed_count"], row["contradiction_count"]) == (MANY, MANY // 2, 0)
    no_container(service)
