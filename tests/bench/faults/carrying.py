"""Carries a fault out again and again on one scene, and records after each repeat what held."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.bench.faults.fault import Fault
from tests.bench.faults.invariants import broken, broken_at_the_end
from tests.bench.faults.results import Result, revision
from tests.bench.faults.scene import ENDED, Opening, Scene, temporary_folder
from tests.faults.service import wait_for

Record = Callable[[Result], None]


def carry_out(
    fault: Fault,
    database: str,
    repeats: Iterable[int],
    *,
    seed: int,
    at_once: int,
    record: Record,
    until: float = float("inf"),
) -> None:
    """The repeats with these numbers, on one scene. A scene that cannot be opened is one broken repeat."""
    numbers = list(repeats)
    here = revision()
    if why_not := fault.needs():
        record(Result(fault.key, database, 0, "", None, skipped=why_not, revision=here))
        return

    def name(number: int) -> str:
        return f"{seed}/{fault.key}/{database}/{number}"

    try:
        with temporary_folder() as folder, fault.open(Opening(folder, fault.all_settings(), database)) as scene:

            def repeat(number: int) -> None:
                if time.monotonic() > until:
                    return
                record(once(fault, database, scene.fresh(), number, name(number), here))

            with ThreadPoolExecutor(1 if fault.alone else at_once) as pool:
                for _ in pool.map(repeat, numbers):
                    pass
            if wrong := broken_at_the_end(scene):
                record(Result(fault.key, database, -1, "at the end of the scene", None, broken=wrong, revision=here))
    except Exception as error:
        wrong = {"scene": f"{type(error).__name__}: {error}"[:800]}
        record(Result(fault.key, database, -1, "the scene itself", None, broken=wrong, revision=here))
        traceback.print_exc()


def once(fault: Fault, database: str, scene: Scene, number: int, seed: str, here: str) -> Result:
    wrong: dict[str, str] = {}
    seconds = None
    try:
        seconds = fault.carry_out(scene, random.Random(seed))
        for submitted in scene.runs:
            wait_for(lambda: scene.see(submitted.run_id)["status"] in ENDED, fault.ends_within_s, "the run has ended", 0.3)  # noqa: B023
    except Exception as error:
        wrong["fault"] = f"{type(error).__name__}: {error}"[:800]
    if seconds is not None and seconds > fault.settle_s:
        wrong["I4"] = f"right again after {seconds:.1f} s, not {fault.settle_s:g} s"
    wrong |= broken(scene)
    return Result(fault.key, database, number, seed, seconds, wrong, dict(scene.lost), revision=here)
