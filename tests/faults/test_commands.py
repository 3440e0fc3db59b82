"""Command benchmarks in real containers of a user's image: figures, walls, misbehaviour, and what dies half-way."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.images import RUNNER
from tests.faults.invariants import log_replays
from tests.faults.service import Service, docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]

GUEST = "benchyard-test-guest:1"
DOCKERFILE = f"""FROM {RUNNER}
RUN mv /opt/venv/bin/python /usr/bin/its-own-python && rm -rf /opt/benchyard-kit
ENV PYTHONHOME=/nowhere LD_PRELOAD=/nowhere.so MINE=1 PATH=/usr/bin:/bin
WORKDIR /usr
USER 1234
ENTRYPOINT ["false"]
"""
UNSET = "unset PYTHONHOME LD_PRELOAD PYTHONPATH; "
SPIN = UNSET + "python3 -c 'import time\nwhile time.process_time() < {}: pass'"
WALLS = """import os, socket
def reach(address):
    try:
        socket.create_connection(address, 2).close()
        return "open"
    except OSError:
        return "closed"
server = socket.create_server(("127.0.0.1", 0))
door = next(line.split()[0] for line in open("/etc/hosts") if "orchestrator" in line)
print(reach(server.getsockname()), reach((door, {port})), reach(("1.1.1.1", 53)))
print(os.getuid() > 1000, os.access("/", os.W_OK))
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if os.stat(f"/proc/{{pid}}").st_uid != os.getuid():
            open(f"/proc/{{pid}}/environ").read()
            print("readable", pid)
    except OSError: pass
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    subprocess.run(["docker", "build", "-q", "-t", GUEST, "-"], input=DOCKERFILE.encode(), check=True, capture_output=True)
    folder: Path = tmp_path_factory.mktemp("commands")
    service = Service(folder / "data", command_images="benchyard-test-*:*", command_pull="false", max_instances=3)
    service.start()
    yield service
    service.close()


def submit(service: Service, command: str | list[str], instance_type: str = "standard-1", **more: Any) -> str:
    task = {"image": GUEST, "command": command, "repeats": 1, **more}
    body = {"kind": "command", "command": task, "instance_type": instance_type}
    answer = service.client.post("/api/container-runs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def repeats(service: Service, run_id: str, status: str = "completed") -> list[dict[str, Any]]:
    service.wait_status(run_id, status, within_s=120)
    found: list[dict[str, Any]] = service.client.get(f"/api/commands/{run_id}").json()["repeats"]
    return found


def output(service: Service, run_id: str, position: int = 0) -> str:
    return str(service.client.get(f"/api/container-runs/{run_id}/items/{position}").json()["repeat"]["output"])


def shell_times(output: str) -> float:
    """Processor seconds of a shell and of its children: user and system of both, each cut to hundredths by `times`."""
    return sum(60 * float(minutes) + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", output))


def test_figures_walls_and_commands_that_misbehave(service: Service) -> None:
    """Side by side, to save time: each is a container of its own."""
    walls = UNSET + "python3 -c '" + WALLS.format(port=service.runner_port) + "'; env | grep -c MINE=1; pwd; touch /x /tmp/y"
    spin = submit(service, SPIN.format(1.5) + "; times", repeats=2, instance_type="standard-2")
    wall = submit(service, walls)
    late = submit(service, "(setsid sleep 600 &); sleep 600", timeout_s=1)
    hungry = submit(service, UNSET + "python3 -c 'x = [bytearray(50 << 20) for _ in range(100)]'", "basic")
    loud = submit(service, ["dd", "if=/dev/urandom", "bs=1M", "count=100", "status=none"])
    bomb = submit(service, "b() { b | b & }; b; sleep 600", timeout_s=5)
    gone = submit(service, ["no-such-program"])
    for repeat in repeats(service, spin):
        assert repeat["outcome"] == "passed", repeat
        own_clock = shell_times(output(service, spin, repeat["number"] - 1))
        assert own_clock > 1.45
        assert repeat["cpu_s"] == pytest.approx(own_clock, abs=0.05), "what the command's own shell counted"
        assert 5 << 20 < repeat["peak_bytes"] < 30 << 20, "the command's memory, not the runner's"
    (found,) = repeats(service, wall, "failed")
    said = output(service, wall)
    assert "open closed closed\nTrue False\n" in said, said
    assert "readable" not in said, said
    assert "\n1\n/usr\n" in said, said
    assert "'/x'" in said, said
    assert "'/tmp/y'" not in said, said
    assert found["outcome"] == "runtime_error", "touch could not write outside of /tmp"
    (found,) = repeats(service, late, "failed")
    assert (found["outcome"], found["wall_s"]) == ("time_limit", 1.0)
    (found,) = repeats(service, bomb, "failed")
    assert (found["outcome"], found["wall_s"]) == ("time_limit", 5.0)
    (found,) = repeats(service, hungry, "failed")
    assert found["outcome"] == "memory_limit"
    (found,) = repeats(service, loud)
    assert found["outcome"] == "passed"
    assert found["output_bytes"] >= 100 << 20
    files = {each["name"]: each["size_bytes"] for each in service.run(loud)["artefacts"]}
    assert 1 << 20 < files["output.txt"] < 16 << 20
    (found,) = repeats(service, gone, "failed")
    assert "the image has no program 'no-such-program'" in found["detail"]
    facts = service.run(spin)["attempts"][0]["facts"]
    assert facts["network"] == "loopback only"
    assert facts["image_id"] == docker("image", "inspect", "--format", "{{.Id}}", GUEST)


def test_killed_half_way_no_repeat_counts_twice(service: Service) -> None:
    """A container is killed while it runs, then the orchestrator; what is done stays, the rest is done once."""
    killed = submit(service, "sleep 4", repeats=5)
    service.wait_items(killed, 2)
    docker("kill", service.container(killed))
    adopted = submit(service, SPIN.format(0.6), repeats=5)
    service.wait_items(adopted, 1)
    service.kill()
    time.sleep(1)
    service.start()
    for run_id, attempts in ((killed, {1, 2}), (adopted, {1})):
        found = repeats(service, run_id)
        assert [each["number"] for each in found] == [1, 2, 3, 4, 5]
        assert {each["attempt"] for each in found} == attempts
        assert len(service.items(run_id)) == 5
        log_replays(service, service.run(run_id))


def test_cancelled_or_not_there_nothing_is_left(service: Service) -> None:
    run_id = submit(service, "sleep 600", repeats=3)
    wait_for(lambda: service.run(run_id)["stage"] == "running", 180, "it runs")
    service.client.post(f"/api/container-runs/{run_id}/cancel")
    service.wait_status(run_id, "cancelled", within_s=30)
    missing = service.client.post(
        "/api/container-runs",
        json={"kind": "command", "command": {"image": "benchyard-test-none:1", "command": "true"}},
    ).json()["run_id"]
    run = wait_for(lambda: (found := service.run(missing))["attempts"] and found, 30, "it was tried")
    wait_for(lambda: "docker pull" in str(service.run(missing)["attempts"][0]["detail"]), 30, f"it says why: {run}")
    service.client.post(f"/api/container-runs/{missing}/cancel")
    service.wait_status(missing, "cancelled", "failed", within_s=30)
    label = f"label=benchyard.instance={service.instance}"
    listed = ("ps", "-a", "--filter", label, "--format", "{{.Names}}")
    wait_for(lambda: all("-kit-" in name for name in docker(*listed).split()), 30, "only the kit is left")
    service.stop()
    assert docker(*listed).split() == [], "the kit goes with the service"
    service.start()
