"""Runners on another machine: an agent with an engine of its own, killed and restarted half-way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import StartService
from tests.faults.invariants import all_hold
from tests.faults.second_engine import SecondMachine
from tests.faults.service import ROOT, Service, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture
def machine() -> Iterator[SecondMachine]:
    it = SecondMachine(Path(tempfile.mkdtemp(prefix="by2-")))  # a socket's path must be short
    try:
        it.start()
        yield it
    finally:
        it.stop()


@pytest.fixture
def agents() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Ended before their machine is."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def start_agent(machine: SecondMachine, service: Service, directory: Path, *options: str) -> subprocess.Popen[bytes]:
    token = service.client.post("/api/tokens", json={"name": os.urandom(4).hex(), "scope": "agent"}).json()["token"]
    command = [sys.executable, "-c", "from orchestrator.cli.main import main; main()", "agent"]
    command += ["--url", f"http://{machine.home}:{service.port}", "--instance-type", "standard-1", "--provider", "elsewhere"]
    command += ["--data", str(directory / "agent"), *options]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("BENCHYARD_")}
    env = {**kept, "BENCHYARD_TOKEN": token, "BENCHYARD_ENGINE": "docker", "BENCHYARD_DOCKER_HOST": machine.socket}
    with (directory / "agent.log").open("ab") as log:
        return machine.popen(command, stdout=log, cwd=ROOT, env=env)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_agent_killed_and_restarted_half_way(
    start_service: StartService, machine: SecondMachine, agents: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    service = start_service(host="0.0.0.0", demo_latency_s=0.3, lease_s=8, suspect_s=8)
    agent = start_agent(machine, service, tmp_path)
    agents.append(agent)
    ids = [service.submit(sample_size=10, concurrency=1, provider="elsewhere") for _ in range(3)]
    local = service.submit(sample_size=1, provider="local")
    wait_for(
        lambda: any(service.run(run_id)["progress"]["done"] for run_id in ids),
        60,
        f"items from the other machine; agent: {(tmp_path / 'agent.log').read_text()[-1500:]}",
    )
    assert machine.docker("ps", "--quiet").split(), "the containers are in the second engine"

    os.killpg(agent.pid, signal.SIGKILL)
    agent.wait()
    agent = start_agent(machine, service, tmp_path)
    agents.append(agent)
    for run_id in [*ids, local]:
        run = service.wait_status(run_id, "completed", within_s=120)
        all_hold(service, run)
        assert run["attempts"][-1]["engine"].startswith("agent:") == (run_id != local)

    (known,) = service.client.get("/api/agents").json()["items"]
    assert service.client.delete(f"/api/agents/{known['id']}").status_code == 204
    assert agent.wait(40) == 0, (tmp_path / "agent.log").read_text()[-1500:]
    assert machine.docker("ps", "--all", "--quiet") == "", "nothing is left on the other machine"
