"""Inspect itself reads our logs: samples, scores, usage, errors, one by one and as a whole, and its viewer serves them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.db.session import Database
from orchestrator.runs.reports.exports.streams import as_inspect, exported_run
from tests.faults.service import free_ports
from tests.manual_clock import START
from tests.rows import a_model, a_run, an_item

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[4]
HOSTILE = "\x00\x1b[31m </script> \U0001f600"
SCORE = {"estimate": 0.5, "low": 0.1, "high": 0.9, "n": 2, "n_all": 3, "pass_at_k": {"1": 0.5}, "parity": None}
READER = """
import json, sys
from inspect_ai.log import (
    read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries, read_eval_log_samples, write_eval_log
)

path, copy = sys.argv[1:3]
log = read_eval_log(path)
write_eval_log(log, copy)
print(json.dumps({
    "log": log.model_dump(mode="json"),
    "header": read_eval_log(path, header_only=True).model_dump(mode="json"),
    "streamed": [sample.id for sample in read_eval_log_samples(path, all_samples_required=False)],
    "one": read_eval_log_sample(path, "dir/p1", 1).model_dump(mode="json"),
    "summaries": [summary.model_dump(mode="json") for summary in read_eval_log_sample_summaries(path)],
    "copied": len(read_eval_log(copy).samples),
}))
"""


async def inspect_programs() -> Path:
    process = await asyncio.create_subprocess_exec(
        ROOT / "scripts/python-environment", "inspect-ai", stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return Path(out.decode().strip())


@pytest.fixture
async def log_file(database: Database, tmp_path: Path) -> Path:
    """A log of a run with a right answer, a hostile and wrong one, and one that the provider broke."""
    run = a_run(items=3, status="completed", score=SCORE, started_at=START, completed_at=START, input_tokens=30)
    run.task.benchmarks[0].problem_ids[:] = ["p0", "dir/p1", "p2"]
    rows = [
        an_item(run.id, "p0", data={"prompt": "2+2?", "answer": "4", "code": "4", "tests": [{"expected": "4"}]}),
        an_item(
            run.id,
            "dir/p1",
            position=1,
            outcome="wrong_answer",
            detail="no",
            data={"prompt": HOSTILE, "answer": HOSTILE, "code": HOSTILE},
        ),
        an_item(run.id, "p2", position=2, outcome="provider_error", detail="gave up", data={"prompt": "3+3?"}),
    ]
    run_id = run.id

    def fill(session: Any) -> None:
        session.add(a_model("m1"))
        session.flush()
        session.add(run)
        session.flush()
        session.add_all(rows)

    await database.write(fill)
    path = tmp_path / "run.eval"
    exported = await exported_run(database, run_id)
    path.write_bytes(b"".join([piece async for piece in as_inspect(database, exported, START)]))
    return path


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_inspect_reads_the_log(log_file: Path) -> None:
    python = await inspect_programs() / "python"
    process = await asyncio.create_subprocess_exec(
        python, "-c", READER, log_file, log_file.with_name("copy.eval"), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    said = json.loads(out)
    log, samples = said["log"], said["log"]["samples"]
    assert (log["status"], log["eval"]["model"], log["eval"]["task"], log["version"]) == ("success", "m1", "sample", 2)
    metrics = log["results"]["scores"][0]["metrics"]
    assert {name: metric["value"] for name, metric in metrics.items()} == {
        "accuracy": 0.5,
        "ci_95_low": 0.1,
        "ci_95_high": 0.9,
        "pass_at_1": 0.5,
    }
    assert said["header"]["results"] == log["results"]
    assert sorted(said["streamed"]) == ["dir/p1", "p0", "p2"]
    by_id = {sample["id"]: sample for sample in samples}
    assert (by_id["p0"]["target"], by_id["p0"]["scores"]["benchyard"]["value"]) == ("4", "C")
    assert by_id["p0"]["output"]["completion"] == "4"
    assert said["one"]["messages"][1]["content"] == said["one"]["scores"]["benchyard"]["answer"] == HOSTILE
    assert by_id["p2"]["error"]["message"] == "provider_error: gave up"
    assert {part["id"]: part["error"] for part in said["summaries"]}["p2"] == "provider_error: gave up"
    assert said["copied"] == 3


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_the_viewer_serves_the_log(log_file: Path) -> None:
    program = await inspect_programs() / "inspect"
    (free_port,) = free_ports(1)
    argv = ("view", "start", "--log-dir", log_file.parent, "--host", "127.0.0.1", "--port", str(free_port))
    viewer = await asyncio.create_subprocess_exec(
        program, *argv, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{free_port}", trust_env=False) as client:
            async with asyncio.timeout(120):
                while not await answers(client):
                    await asyncio.sleep(0.2)
            logs = (await client.get("/api/logs")).json()["files"]
            headers = (await client.get("/api/log-headers", params={"file": [logs[0]["name"]]})).json()
    finally:
        viewer.terminate()
        await viewer.wait()
    assert [Path(log["name"]).name for log in logs] == ["run.eval"]
    assert (headers[0]["status"], headers[0]["eval"]["model"]) == ("success", "m1")


async def answers(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/api/logs")).status_code == 200
    except httpx.TransportError:
        return False
