"""Short forms of the faults that no other test here carries out: one repeat of the harness each, with all its invariants.

F13, F14, F15 and F24, on one service for each database.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.bench.faults import invariants, lines, programs, providers
from tests.bench.faults.carrying import Repeat, once
from tests.bench.faults.fault import Fault
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import Opening, Scene

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SETTINGS = {"lease_s": 60, "suspect_s": 60, "request_timeout_s": 600}
SEED = 22


def of(faults: list[Fault], *words: str) -> list[Fault]:
    return [fault for fault in faults if any(word in fault.key for word in words)]


WITH_THE_DATABASE = [*of(lines.FAULTS, "F13"), *of(providers.FAULTS, "three troubles")]
WITHOUT = [*programs.FAULTS, *of(providers.FAULTS, "100 MB")]
HOLE_S = 5


@pytest.mark.parametrize(
    ("database", "faults"),
    [("sqlite", [*WITH_THE_DATABASE, *WITHOUT]), ("postgresql", WITH_THE_DATABASE)],
    ids=["sqlite", "postgresql"],
)
def test_hostile_lines_programs_and_providers(database: str, faults: list[Fault], tmp_path: Path) -> None:
    with open_kinds(Opening(tmp_path, SETTINGS, database)) as scene:

        def carry_out(fault: Fault) -> dict[str, str]:
            found = once(Repeat(fault, database, 1), scene.fresh(), f"{SEED}/{fault.key}", "")
            return {f"{fault.key}: {name}": words for name, words in found.broken.items() if name != "I4"}  # no clock

        with ThreadPoolExecutor(len(faults)) as pool:
            broken = [each for each in pool.map(carry_out, faults) if each]
        assert broken == []
        if lines.iptables_missing() is None:  # F14
            repeat = scene.fresh()
            lines.swallowed(repeat, random.Random(SEED), hole_s=HOLE_S, runs=1)
            assert invariants.broken(repeat) == {}
            assert repeat.see(repeat.runs[0].run_id)["attempt"] == 1
        assert invariants.broken_at_the_end(scene) == {}
        if database == "sqlite":
            assert {"I1", "I2", "I9"} <= tampered(scene).keys(), "the checks see what is missing"


def tampered(scene: Scene) -> dict[str, str]:
    """What the checks say of a run that lost a result and the record of a call behind the service's back."""
    repeat = scene.fresh()
    run_id = repeat.submit(2)
    repeat.service.wait_status(run_id, "completed")
    assert invariants.broken(repeat) == {}
    with contextlib.closing(sqlite3.connect(scene.service.data / "benchyard.db", timeout=600)) as database, database:
        for table in ("item_results", "gateway_calls"):
            database.execute(
                f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table} WHERE run_id = ?)", (run_id,)
            )
    return invariants.broken(repeat)
