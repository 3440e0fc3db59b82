"""The short form of faults that the harness carries out at random moments (tests/bench/faults): each once, smaller, without
a limit on time. The invariants that are checked afterwards are the harness's own."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from tests.bench.faults import clocks, crashes, databases, disks, engines, leaders, load, upgrades
from tests.bench.faults.fault import POSTGRESQL, SQLITE, Fault
from tests.bench.faults.invariants import broken, broken_at_the_end
from tests.bench.faults.scene import ENDED, Opening, Scene, temporary_folder
from tests.faults.service import wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PATIENT: Mapping[str, object] = {
    "lease_s": 60,
    "suspect_s": 60,
    "start_timeout_s": 600,
    "request_timeout_s": 600,
    "leader_lease_s": 10,
}
"""A busy machine is no fault."""


def only(module: object, part: str) -> Fault:
    (found,) = [fault for fault in module.FAULTS if part in fault.name]  # type: ignore[attr-defined]
    return found  # type: ignore[no-any-return]


def some_steps(scene: Scene, rng: random.Random) -> float | None:
    """A few of the crash points, far apart."""
    points = sorted(scene.extras["points"])
    scene.extras["points"] = [points[len(points) * part // 4 + rng.randrange(len(points) // 4)] for part in range(4)]
    for _ in range(4):
        crashes.die_at_a_step(scene, rng)
    return None


def stopped_killed_and_hung(scene: Scene, rng: random.Random) -> float | None:
    for harm in (engines.engine_hung, engines.engine_killed, engines.engine_stopped):
        harm(scene, rng)
    return None


SHORT: dict[str, tuple[Fault, str]] = {
    "F2": (replace(only(crashes, "killed"), carry_out=some_steps), SQLITE),
    "F4": (only(leaders, "leader"), POSTGRESQL),
    "F9": (replace(only(engines, "hung"), carry_out=stopped_killed_and_hung), SQLITE),
    "F10 SQLite": (only(disks, "database"), SQLITE),
    "F10 PostgreSQL": (only(disks, "database"), POSTGRESQL),
    "F10 engine": (only(engines, "disk full"), SQLITE),
    "F11 stopped": (only(databases, "stopped"), POSTGRESQL),
    "F11 cut": (only(databases, "COMMIT"), POSTGRESQL),
    "F12": (replace(only(databases, "locked"), carry_out=partial(databases.sqlite_locked, seconds_locked=6)), SQLITE),
    "F20 away": (only(clocks, "killed"), SQLITE),
    "F20 set": (only(clocks, "set by"), POSTGRESQL),
    "F21": (
        replace(
            only(load, "schedules"),
            open=partial(load.open_with_schedules, count=20),
            carry_out=partial(load.all_due_at_once, kept=4, p99_s=None),
        ),
        SQLITE,
    ),
    "F22": (replace(only(load, "streams"), carry_out=partial(load.many_streams, count=60, seconds=3)), SQLITE),
    "F25": (only(upgrades, "upgraded"), POSTGRESQL),
}


@pytest.mark.parametrize("name", SHORT)
def test_what_must_hold_holds(name: str) -> None:
    fault, database = SHORT[name]
    assert not fault.needs()
    settings = fault.all_settings() | PATIENT
    with temporary_folder() as folder, fault.open(Opening(folder, settings, database, 0.2)) as whole:
        scene = whole.fresh()
        fault.carry_out(scene, random.Random(name))
        for submitted in scene.runs:
            wait_for(lambda: scene.see(submitted.run_id)["status"] in ENDED, 60, "the run has ended", 0.3)  # noqa: B023
        assert broken(scene) == {}
        assert broken_at_the_end(scene) == {}
