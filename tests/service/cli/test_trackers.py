"""Runs in experiment trackers: a real MLflow server, and Weights & Biases in its offline mode."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.service import free_ports
from tests.served import Service
from tests.unit.cli.command_line import Benchyard

ROOT = Path(__file__).parents[3]
SENDER = """
import json, sys
from pathlib import Path
from orchestrator.cli.trackers.tracked_run import tracked_run
from orchestrator.cli.trackers.{tracker}_tracker import send

run = json.loads(Path(sys.argv[1]).read_text())["run"]
for _ in range(2):
    print(send([tracked_run(run, (Path(sys.argv[1]),))], "mine", sys.argv[2] or None)[0])
"""


def test_what_cannot_be_sent_is_a_sentence(service: Service, benchyard: Benchyard) -> None:
    run = benchyard("run", "-m", "demo-weak", "-n", "1", "-b", "sample", "--json").json["runs"][0]["id"]
    for tracker in ("mlflow", "wandb"):
        refused = benchyard("export", run, "--to", tracker)
        assert (refused.code, f"pip install 'benchyard[{tracker}]'" in refused.err) == (2, True)
    assert "is not one of mlflow, wandb" in benchyard("export", run, "--to", "paper").err
    assert "leave out --format" in benchyard("export", run, "--to", "mlflow", "--format", "csv").err


@pytest.fixture(scope="session")
def programs() -> Path:
    made = subprocess.run([ROOT / "scripts/python-environment", "trackers"], capture_output=True, text=True, check=True)
    return Path(made.stdout.strip())


@pytest.fixture
def exported(service: Service, benchyard: Benchyard, tmp_path: Path) -> Path:
    run = benchyard("run", "-m", "demo-weak", "-n", "2", "-b", "sample", "--json").json["runs"][0]["id"]
    assert benchyard("export", run, "--format", "json", "--out", str(tmp_path / "run.json")).code == 0
    return tmp_path / "run.json"


@pytest.fixture
def mlflow_url(programs: Path, tmp_path: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    store = ("--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db", "--artifacts-destination", str(tmp_path / "files"))
    argv = [programs / "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1", *store]
    path = f"{programs}:{os.environ['PATH']}"
    server = subprocess.Popen(
        argv, env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    url = f"http://127.0.0.1:{port}"
    try:
        give_up = time.monotonic() + 300
        while not _answers(url):
            assert time.monotonic() < give_up
            time.sleep(0.5)
        yield url
    finally:
        os.killpg(server.pid, 15)
        server.wait()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def sent(programs: Path, tracker: str, exported: Path, url: str, **variables: str) -> list[str]:
    """Sends the run twice, with the tracker's own library."""
    script = SENDER.replace("{tracker}", tracker)
    env = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(
        [programs / "python", "-c", script, exported, url],
        env=env,
        cwd=exported.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.exhaustive
def test_mlflow_has_the_run_once(programs: Path, exported: Path, mlflow_url: str) -> None:
    first, second = sent(programs, "mlflow", exported, mlflow_url)
    assert first == second

    def ask(method: str, **query: Any) -> Any:
        return httpx.get(f"{mlflow_url}/api/2.0/mlflow/{method}", params=query, trust_env=False).json()

    experiment = ask("experiments/get-by-name", experiment_name="mine")["experiment"]["experiment_id"]
    body = {"experiment_ids": [experiment]}
    (run,) = httpx.post(f"{mlflow_url}/api/2.0/mlflow/runs/search", json=body, trust_env=False).json()["runs"]
    metrics = {metric["key"]: metric["value"] for metric in run["data"]["metrics"]}
    assert {"score.estimate", "score.low", "score.high", "score.n"} <= metrics.keys()
    assert {param["key"]: param["value"] for param in run["data"]["params"]}["model"] == "demo-weak"
    assert run["info"]["status"] == "FINISHED"
    assert len(ask("metrics/get-history", run_id=first, metric_key="score.estimate")["metrics"]) == 1
    assert [file["path"] for file in ask("artifacts/list", run_id=first, path="benchyard")["files"]] == [
        "benchyard/run.json"
    ]


@pytest.mark.exhaustive
def test_wandb_has_one_run_offline(programs: Path, exported: Path) -> None:
    first, second = sent(programs, "wandb", exported, "", WANDB_MODE="offline", WANDB_DIR=str(exported.parent))
    assert first == second
    logs = list(exported.parent.glob("wandb/offline-run-*/*.wandb"))
    assert {log.name for log in logs} == {f"run-{first}.wandb"}
    for log in logs:
        content = log.read_bytes()
        assert all(word in content for word in (b"score.estimate", b"score.low", b"demo-weak", b"benchyard.run_id"))
