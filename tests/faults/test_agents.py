"""A whole batch over two machines: an agent with an engine of its own, both killed and restarted half-way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.archives.format.reading import read_archives
from tests.faults.conftest import StartService
from tests.faults.invariants import log_replays, nothing_left, nothing_lost
from tests.faults.second_engine import SecondMachine
from tests.faults.service import ROOT, Service, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TYPES = {
    name: {"vcpu": vcpu, "memory_mib": 512, "disk_gb": 2} for name, vcpu in (("small", 0.4), ("middle", 0.5), ("large", 0.6))
}
MODELS = ["demo-strong", "demo-weak"]
REPEATS, PROBLEMS = 3, 3
MEMBERS = len(TYPES) * len(MODELS) * REPEATS


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


def start_agent(machine: SecondMachine, service: Service, directory: Path) -> subprocess.Popen[bytes]:
    token = service.client.post("/api/tokens", json={"name": os.urandom(4).hex(), "scope": "agent"}).json()["token"]
    command = [sys.executable, "-c", "from orchestrator.cli.main import main; main()", "agent"]
    command += [
        "--url",
        f"http://{machine.home}:{service.port}",
        "--provider",
        "elsewhere",
        "--data",
        str(directory / "agent"),
    ]
    command += [word for name in TYPES for word in ("--instance-type", name)]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("BENCHYARD_")}
    env = {**kept, "BENCHYARD_TOKEN": token, "BENCHYARD_ENGINE": "docker", "BENCHYARD_DOCKER_HOST": machine.socket}
    with (directory / "agent.log").open("ab") as log:
        return machine.popen(command, stdout=log, cwd=ROOT, env=env)


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Batch:
    def __init__(self, service: Service) -> None:
        self._service = service
        asked = {
            "models": MODELS,
            "benchmarks": ["sample"],
            "instance_types": list(TYPES),
            "runs_per_instance_type": REPEATS,
            "sample_size": PROBLEMS,
            "concurrency": 1,
        }
        answer = service.client.post("/api/batches", json=asked)
        assert answer.status_code == 202, answer.text
        self.id = answer.json()["batch_id"]
        assert answer.json()["runs"] == MEMBERS

    def now(self) -> dict[str, Any]:
        found: dict[str, Any] = self._service.client.get(f"/api/batches/{self.id}").json()
        return found

    def members(self) -> list[dict[str, Any]]:
        return [each for group in self.now()["instance_types"] for each in group["members"]]

    def over(self) -> int:
        return sum(each["status"] == "completed" for each in self.members())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_batch_over_two_machines_one_of_which_dies_half_way(
    start_service: StartService, machine: SecondMachine, agents: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    service = start_service(host="0.0.0.0", instance_types=json.dumps(TYPES), default_instance_type="small",
                            demo_latency_s=0.3, lease_s=30, suspect_s=15)  # fmt: skip
    agents.append(start_agent(machine, service, tmp_path))
    wait_for(lambda: service.client.get("/api/agents").json()["items"], 180, f"the agent is there: {said(tmp_path)}")

    # The agent alone dies: what it started goes on
    batch = Batch(service)
    wait_for(lambda: machine.docker("ps", "--quiet"), 120, f"a container there: {said(tmp_path)}", every_s=0.5)
    kill(agents[-1])
    agents.append(start_agent(machine, service, tmp_path))

    # The whole machine dies: engine and agent
    half = lambda: batch.over() >= MEMBERS // 3 and machine.docker("ps", "--quiet")  # noqa: E731
    wait_for(half, 240, f"half-way: {said(tmp_path)}", every_s=0.5)
    kill(agents[-1])
    machine.kill_engine()
    machine.start_engine()
    agents.append(start_agent(machine, service, tmp_path))
    wait_for(lambda: batch.over() == MEMBERS, 300, f"all are there: {said(tmp_path)}", every_s=0.5)

    # All results, none twice, each with its archive
    assert batch.now()["state"] == "completed"
    wait_for(lambda: all((each["archive"] or {}).get("state") == "stored" for each in batch.members()), 180, "archives", 0.5)
    engines = set()
    for each in batch.members():
        run = service.run(each["run_id"])
        nothing_lost(service, run)
        log_replays(service, run)
        engines |= {attempt["engine"].partition(":")[0] for attempt in run["attempts"]}
        file = tmp_path / "result.tar.gz"
        file.write_bytes(service.client.get(f"/api/container-runs/{run['id']}/archive").content)
        results: list[dict[str, Any]] = []
        manifest = read_archives(file, lambda: results.append).manifests[0]  # noqa: B023
        assert (manifest["kind"], manifest["grading_digest"]) == ("result", each["archive"]["grading_digest"])
        assert len({result["problem_id"] for result in results}) == len(results) == PROBLEMS
    assert engines == {"docker", "agent"}, "both machines had a part"
    (tmp_path / "batch.tar.gz").write_bytes(service.client.get(f"/api/batches/{batch.id}/archive").content)
    with tarfile.open(tmp_path / "batch.tar.gz") as tar:
        assert len({Path(name).parts[0] for name in tar.getnames() if "/" in name}) == MEMBERS
    matrix = service.client.get(f"/api/batches/{batch.id}/matrix").json()
    assert (matrix["flips"], matrix["varied"], matrix["items"]) == (0, 0, PROBLEMS * len(MODELS))

    # Told to leave, the agent ends; nothing is left on either engine
    nothing_left(service)
    (known,) = service.client.get("/api/agents").json()["items"]
    assert service.client.delete(f"/api/agents/{known['id']}").status_code == 204
    assert agents[-1].wait(600) == 0, said(tmp_path)
    assert machine.docker("ps", "--all", "--quiet") == ""
    assert machine.docker("network", "ls", "--quiet", "--filter", "label=benchyard.instance") == ""


def said(directory: Path) -> str:
    return (directory / "agent.log").read_text()[-1500:]
