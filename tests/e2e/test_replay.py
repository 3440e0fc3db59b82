"""An archive of a run in a real container, graded again in a fresh one without a service: the same digest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.service import free_ports

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_replaying_a_batch_reaches_the_same_digest(tmp_path: Path) -> None:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("BENCHYARD_", "DATABASE_URL"))}
    port, runner_port = free_ports(2)
    env = {
        **kept,
        "BENCHYARD_DATA": str(tmp_path / "data"),
        "BENCHYARD_PORT": str(port),
        "BENCHYARD_RUNNER_PORT": str(runner_port),
        "BENCHYARD_ENGINE": "docker",
        "BENCHYARD_INSTANCE": f"replay-{os.getpid()}",
        "BENCHYARD_RUNNER_NETWORK": f"benchyard-replay-{os.getpid()}",
        "BENCHYARD_DEMO_LATENCY_S": "0.01",
    }

    def benchyard(*words: str) -> Any:
        command = [sys.executable, "-m", "orchestrator.cli", *words, "--json"]
        ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800, check=False)
        assert ended.returncode == 0, f"benchyard {' '.join(words)}: {ended.stdout}\n{ended.stderr}"
        return json.loads(ended.stdout)

    # Given a batch over two instance types, whose archives were fetched, and no service any more
    config = tmp_path / "batch.yaml"
    config.write_text("models: [demo-weak]\ninstance_types: [standard-1, standard-2]\nsample_size: 12\n")
    benchyard("up")
    try:
        made = benchyard("batch", "run", str(config), "--out", str(tmp_path / "results"))
        whole = benchyard("batch", "fetch", made["batch"]["id"], "--whole", "--out", str(tmp_path))["new"][0]
    finally:
        benchyard("down")
    assert made["batch"]["state"] == "completed"
    assert (made["matrix"]["flips"], made["matrix"]["varied"]) == (0, 0)
    assert made["matrix"]["compared"] == made["matrix"]["items"] == 12
    archives = sorted((tmp_path / "results").rglob("result.tar.gz"))
    assert len(archives) == 2
    # When the whole batch is graded again, then every verdict is the same, and so is the digest, which the machines share
    all_again = benchyard("replay", whole, "--engine", "docker")
    assert (all_again["same"], len(all_again["runs"])) == (True, 2)
    again = all_again["runs"][0]
    assert (again["same"], again["verdicts"], again["not_graded_again"], again["moved"]) == (True, 12, 0, [])
    digests = {
        member["archive"]["grading_digest"] for group in made["batch"]["instance_types"] for member in group["members"]
    }
    assert digests - {None} <= {again["replayed_digest"]}
