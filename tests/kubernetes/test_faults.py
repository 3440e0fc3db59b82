"""Every fault of a cluster once: the run completes, each item counts once, each answer is bought once, nothing is left."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.faults import FAULTS, Fault, api_down, once
from tests.kubernetes.scene import Scene, scene

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow]

SHORT = {"lease_s": 20, "suspect_s": 10, "start_timeout_s": 30}
"""Shorter than anybody's settings, so that a silent runner is given up soon."""
SEED = 5


@pytest.fixture(scope="module")
def shared_scene(cluster: Cluster) -> Iterator[Scene]:
    with scene(cluster, **SHORT) as made:
        yield made


def cases() -> Iterator[object]:
    for fault in FAULTS.values():
        brief = replace(fault, strike=api_down(15)) if fault.name.startswith("API server") else fault
        yield pytest.param(brief, marks=[pytest.mark.own_nodes] if fault.own_nodes else [], id=fault.name)


@pytest.mark.parametrize("fault", list(cases()))
def test_nothing_is_lost_doubled_or_left(shared_scene: Scene, fault: Fault) -> None:
    once(shared_scene, fault, random.Random(SEED))
