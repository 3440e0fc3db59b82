"""Whether one more container fits, and what is said if not."""

from __future__ import annotations

import pytest

from orchestrator.engines.engine import InstanceType
from orchestrator.runs.scheduling.capacity import GIB, Capacity, Load, never_fits, why_not
from orchestrator.runs.scheduling.fleet import Waiting
from orchestrator.runs.tables import ContainerRun

HALF = InstanceType("half", 0.5, 4 * GIB, 0)
HUGE = InstanceType("huge", 64, GIB, 0)
FAT = InstanceType("fat", 0.5, 64 * GIB, 0)
FEW = InstanceType("few", 0.1, GIB, 0, max_instances=2)
ROOM = Capacity(3, 2.0, 16 * GIB)


@pytest.mark.parametrize(
    ("load", "wanted", "says"),
    [
        pytest.param([], HALF, None, id="empty"),
        pytest.param([HALF] * 2, HALF, None, id="exactly fills"),
        pytest.param([HALF] * 3, HALF, "all 3 instances are in use", id="max_instances"),
        pytest.param([InstanceType("x", 1.9, GIB, 0)], HALF, "needs 0.5 vCPU, 0.1 of 2 free", id="vcpu"),
        pytest.param([InstanceType("x", 0.1, 13 * GIB, 0)], HALF, "needs 4 GiB of memory, 3 of 16 free", id="memory"),
        pytest.param([FEW] * 2, FEW, "all 2 instances of few are in use", id="max_instances of a type"),
        pytest.param([FEW] * 2, HALF, None, id="another type's max_instances"),
        pytest.param([], HUGE, "huge needs 64 vCPU, this engine has 2", id="never: vcpu"),
        pytest.param([], FAT, "fat needs 64 GiB of memory, this engine has 16", id="never: memory"),
    ],
)
def test_why_not(load: list[InstanceType], wanted: InstanceType, says: str | None) -> None:
    why = why_not(ROOM, Load.of(load), wanted)
    assert why is None if says is None else says in (why or "")


def test_sixteenths_add_up() -> None:
    lite = InstanceType("lite", 1 / 16, 1, 0)
    load = Load.of([lite] * 31)
    assert why_not(Capacity(99, 2.0, GIB), load, lite) is None
    assert why_not(Capacity(99, 2.0, GIB), load.plus(lite), lite) is not None


def test_what_never_fits_says_what_to_do() -> None:
    assert "choose a smaller instance type" in (never_fits(ROOM, HUGE) or "")
    assert never_fits(ROOM, HALF) is None


@pytest.mark.parametrize(
    ("position", "sentence"),
    [
        (None, "Queued: the disk is full"),
        (1, "Queued, next in line: the disk is full"),
        (2, "Queued, 2nd in line: the disk is full"),
        (11, "Queued, 11th in line: the disk is full"),
        (123, "Queued, 123rd in line: the disk is full"),
    ],
)
def test_a_queued_run_says_its_place(position: int | None, sentence: str) -> None:
    assert Waiting(ContainerRun(), "the disk is full", position).sentence == sentence
