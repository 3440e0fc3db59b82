"""The command as people use it: a process per command, a real engine, from `up` to `down` with nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return one.getsockname()[1], two.getsockname()[1]


class Yard:
    """One data directory with its own ports, network and instance."""

    def __init__(self, data: Path) -> None:
        port, runner_port = free_ports()
        self.data = data
        self.name = f"cli-{uuid.uuid4().hex[:8]}"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("BENCHYARD_", "DATABASE_URL"))}
        self.env = {
            **kept,
            "BENCHYARD_DATA": str(data),
            "BENCHYARD_PORT": str(port),
            "BENCHYARD_RUNNER_PORT": str(runner_port),
            "BENCHYARD_RUNNER_NETWORK": f"benchyard-{self.name}",
            "BENCHYARD_INSTANCE": self.name,
            "BENCHYARD_ENGINE": "docker",
            "BENCHYARD_DEMO_LATENCY_S": "5",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "orchestrator.cli", *words]
        return subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __call__(self, *words: str, code: int = 0) -> str:
        child = self.start(*words)
        out, err = child.communicate(timeout=900)
        assert child.returncode == code, f"benchyard {' '.join(words)}: {child.returncode}\n{out}\n{err}"
        return out

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))

    def left(self) -> list[str]:
        """Everything on the engine that carries this instance's label."""
        label = ("--filter", f"label=benchyard.instance={self.name}", "--quiet")
        found = []
        for words in (("ps", "--all"), ("network", "ls"), ("volume", "ls")):
            answer = subprocess.run(["docker", *words, *label], capture_output=True, text=True, timeout=600, check=True)
            found += answer.stdout.split()
        return found


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    it = Yard(tmp_path / "data")
    yield it
    it("down")


def until_running(yard: Yard, run_id: str) -> None:
    deadline = time.monotonic() + 600
    while yard.json("show", run_id)["status"] != "running":
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_from_up_to_down(yard: Yard) -> None:
    yard("runs", code=5)
    first = yard.json("up")
    assert first["started"]
    again = yard.json("up")
    assert (again["pid"], again["started"]) == (first["pid"], False)
    assert f"/login?token={(yard.data / 'token').read_text().strip()}" in first["login_url"]

    table = yard("run", "--model", "demo-strong", "--model", "demo-weak", "-n", "3", "--instance-type", "basic")
    assert table.count("completed") == 2
    assert "95 % interval" in table

    long_id = yard.json("run", "-m", "demo-weak", "-n", "all", "--concurrency", "1", "--detach")["runs"][0]["id"]
    until_running(yard, long_id)
    assert len(yard.json("runs")["items"]) == 3
    assert "is being cancelled" in yard("cancel", long_id[:18])
    assert "runner.claimed" in yard("logs", "--follow", long_id)
    shown = yard.json("show", long_id)
    assert (shown["status"], shown["reason"]) == ("cancelled", "cancelled_by_user")
    assert "The run was cancelled by a user." in yard("show", long_id)

    down = yard.json("down")
    assert down["pid"] == first["pid"]
    assert not Path(f"/proc/{first['pid']}").exists() or "Z" in Path(f"/proc/{first['pid']}/stat").read_text()
    assert yard.left() == []
    assert "Nothing of Benchyard was running" in yard("down")
    yard("runs", code=5)


def test_down_in_the_middle_and_up_again_loses_nothing(yard: Yard) -> None:
    yard("up")
    watcher = yard.start("run", "-m", "demo-strong", "-n", "all", "--concurrency", "1", "--instance-type", "standard-1")
    deadline = time.monotonic() + 600
    while not (runs := yard.json("runs")["items"]) or runs[0]["progress"]["done"] < 2:
        assert time.monotonic() < deadline
    watcher.send_signal(signal.SIGINT)
    _, said = watcher.communicate(timeout=600)
    assert watcher.returncode == 130
    run_id = runs[0]["id"]
    assert f"benchyard cancel {run_id}" in said

    assert yard.json("down")["containers"] == [f"benchyard-run-{run_id}-a1"]
    assert yard.left() == []
    yard("up")
    kept = yard.json("show", run_id)["progress"]["done"]
    assert kept >= 2
    yard("cancel", run_id)
