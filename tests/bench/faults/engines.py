"""The engine itself fails: stopped, killed, hung, its disk full (F9, F10). It is a second engine, in a network of its own,
and the service beside it: nobody else's containers are touched."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.faults.fault import SQLITE, Fault
from tests.bench.faults.scene import ENDED, Opening, Scene, around_service
from tests.faults.asking import Asking
from tests.faults.counting_provider import CountingProvider
from tests.faults.second_engine import SecondMachine, ServiceThere
from tests.faults.service import wait_for
from tests.faults.small_disk import MIB, SmallDisk
from tests.postgres_from_wheel import PostgresFromWheel

ENGINE_DISK_MIB = 3000
ROOM_MIB = 64


def cannot() -> str | None:
    if os.geteuid() != 0:
        return "a second engine and loop file systems need root"
    if shutil.which("dockerd") is None:
        return "there is no dockerd on this machine"
    return None


@contextmanager
def open_beside_engine(opening: Opening, disk_mib: int | None = None) -> Iterator[Scene]:
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="by2-"))  # a socket's path must be short
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        disk = stack.enter_context(SmallDisk(folder, disk_mib)) if disk_mib else None
        place = (disk.path if disk else folder) / "m"
        place.mkdir()
        machine = SecondMachine(place)
        stack.callback(machine.stop)
        machine.start()
        postgres, url = None, None
        if opening.database == "postgresql":
            postgres = PostgresFromWheel()
            stack.callback(postgres.close)
            postgres.start()
            url = postgres.url(postgres.create())
        provider = CountingProvider(opening.folder / "provider.log", opening.provider_latency_s, host=machine.home)
        stack.enter_context(provider)

        def beside(*arguments: object, **named: object) -> ServiceThere:
            return ServiceThere(machine, *arguments, **named)  # type: ignore[arg-type]

        around = around_service(opening, provider, url, postgres, docker_host=machine.socket, make_service=beside)
        scene = stack.enter_context(around)
        scene.extras |= {"machine": machine, "disk": disk}
        yield scene


@contextmanager
def open_beside_small_engine(opening: Opening) -> Iterator[Scene]:
    with open_beside_engine(opening, ENGINE_DISK_MIB) as scene:
        yield scene


def _trouble(scene: Scene, part: str) -> str | None:
    """The sentence about a part that is in trouble, or None."""
    said = scene.service.client.get("/readyz").json()["parts"].get(part) or {}
    return None if said.get("ok", True) else str(said.get("sentence"))


def _out_of_reach(scene: Scene, rng: random.Random, longest_s: float) -> None:
    """While the engine cannot be asked, the API answers and nothing is concluded about any run."""
    wait_for(lambda: _trouble(scene, "engine"), 60, "it notices that the engine does not answer")
    before = {submitted.run_id: scene.see(submitted.run_id) for submitted in scene.runs}
    waiting = scene.submit(2)
    with Asking(scene.service, uuid.uuid4().hex[:8]) as asking:
        time.sleep(rng.uniform(2, longest_s))
        assert _trouble(scene, "engine"), "it came back too early"
        for run_id, then in before.items():
            now = scene.see(run_id)
            same = (now["status"], now["attempt"]) == (then["status"], then["attempt"])
            assert same or now["status"] == "completed", f"{then['status']} became {now['status']}: {now['reason']}"
        new = scene.see(waiting)
        assert new["status"] == "pending", (
            f"{new['status']}, attempt {new['attempt']}: {new['reason']}, {new['waiting_for']}"
        )
    assert not asking.wrong, asking.wrong[:5]
    assert set(asking.answers) == {201}, asking.answers


def _right_again(scene: Scene) -> float:
    began = time.monotonic()
    wait_for(lambda: _trouble(scene, "engine") is None, 60, "the engine is back")
    seconds = time.monotonic() - began
    for submitted in scene.runs:
        wait_for(lambda: scene.see(submitted.run_id)["status"] in ENDED, 120, "the run ends", 0.3)  # noqa: B023
        run = scene.see(submitted.run_id)
        assert run["status"] == "completed", f"{run['status']}: {run['reason']}"
    return seconds


def engine_stopped(scene: Scene, rng: random.Random) -> float:
    machine: SecondMachine = scene.extras["machine"]
    scene.running(rng)
    machine.stop_engine()
    _out_of_reach(scene, rng, 8)
    machine.start_engine()
    return _right_again(scene)


def engine_killed(scene: Scene, rng: random.Random) -> float:
    machine: SecondMachine = scene.extras["machine"]
    scene.running(rng)
    machine.kill_engine()
    _out_of_reach(scene, rng, 8)
    machine.start_engine()
    return _right_again(scene)


def engine_hung(scene: Scene, rng: random.Random) -> float:
    machine: SecondMachine = scene.extras["machine"]
    scene.running(rng)
    machine.hang_engine()
    try:
        _out_of_reach(scene, rng, 12)
    finally:
        machine.wake_engine()
    return _right_again(scene)


def engine_disk_full(scene: Scene, rng: random.Random) -> float:
    """What runs goes on; what waits says why, and starts by itself once there is room."""
    disk: SmallDisk = scene.extras["disk"]
    scene.running(rng)
    disk.fill()
    try:
        wait_for(lambda: _trouble(scene, "disk"), 60, "it says that the disk is full")
        waiting = scene.submit(2)
        time.sleep(rng.uniform(2, 6))
        run = scene.see(waiting)
        assert (run["status"], run["attempt"]) == ("pending", 0), run
        reasons = {each["run_id"]: each["why"] for each in scene.service.client.get("/api/fleet").json()["waiting"]}
        assert "no new run starts until there is room" in reasons[waiting], reasons
    finally:
        disk.make_room()
    began = time.monotonic()
    wait_for(lambda: scene.see(waiting)["status"] != "pending", 60, "the waiting run starts")
    seconds = time.monotonic() - began
    for submitted in scene.runs:
        run = scene.service.wait_status(submitted.run_id, "completed")
    return seconds


FAULTS = [
    Fault("F9", "engine stopped and started", 30, engine_stopped, alone=True, open=open_beside_engine, needs=cannot),
    Fault("F9", "engine killed -9 and started", 30, engine_killed, alone=True, open=open_beside_engine, needs=cannot),
    Fault("F9", "engine hung (SIGSTOP)", 30, engine_hung, alone=True, open=open_beside_engine, needs=cannot),
    Fault(
        "F10",
        "engine's disk full",
        30,
        engine_disk_full,
        alone=True,
        databases=(SQLITE,),
        settings={"min_free_disk_bytes": ROOM_MIB * MIB, "min_free_disk_share": 0},
        open=open_beside_small_engine,
        needs=cannot,
    ),
]
