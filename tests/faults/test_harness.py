"""Short forms of the faults that no other test here carries out: one repeat of the harness each, with all its invariants.

F13, F14, F15, F16 and F24, on one service for each database.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.faults import lines, programs, providers, runners
from tests.bench.faults.carrying import Repeat, once
from tests.bench.faults.fault import Fault
from tests.bench.faults.invariants import broken_at_the_end
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import Opening

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SETTINGS = {"lease_s": 60, "suspect_s": 60, "request_timeout_s": 600}
SEED = 22


def of(faults: list[Fault], *words: str) -> list[Fault]:
    return [fault for fault in faults if any(word in fault.key for word in words)]


BESIDE_ONE_ANOTHER = [
    *of(lines.FAULTS, "F13"),
    *programs.FAULTS,
    *of(runners.FAULTS, "F16"),
    *providers.FAULTS,
]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_hostile_lines_programs_and_providers(database: str, tmp_path: Path) -> None:
    with open_kinds(Opening(tmp_path, SETTINGS, database)) as scene:

        def carry_out(fault: Fault) -> dict[str, str]:
            found = once(Repeat(fault, database, 1), scene.fresh(), f"{SEED}/{fault.key}", "")
            return {f"{fault.key}: {name}": words for name, words in found.broken.items() if name != "I4"}  # no clock

        with ThreadPoolExecutor(len(BESIDE_ONE_ANOTHER)) as pool:
            broken = [each for each in pool.map(carry_out, BESIDE_ONE_ANOTHER) if each]
        assert broken == []
        assert broken_at_the_end(scene) == {}


@pytest.mark.skipif(lines.iptables_missing() is not None, reason="needs iptables and root")
def test_the_address_for_runners_is_down(tmp_path: Path) -> None:
    """F14: for longer than all leases, and three start time-outs."""
    settings = {**SETTINGS, "lease_s": 4, "suspect_s": 2, "start_timeout_s": 4}
    with open_kinds(Opening(tmp_path, settings, "sqlite")) as scene:
        repeat = replace(scene.fresh(), runs=[])
        lines.swallowed(repeat, random.Random(SEED), hole_s=35, runs=1)
