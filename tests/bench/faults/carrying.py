"""Carries faults out again and again, and records after each repeat what held.

Faults that want the same service share one (`together`): those that do not need it to themselves are carried out beside one
another, in random order, and then the others, one at a time.
"""

from __future__ import annotations

import os
import random
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.bench.faults.fault import Fault
from tests.bench.faults.invariants import broken, broken_at_the_end
from tests.bench.faults.results import Result, revision
from tests.bench.faults.scene import ENDED, Opening, Scene, temporary_folder
from tests.faults.service import wait_for

Record = Callable[[Result], None]


@dataclass(frozen=True)
class Repeat:
    fault: Fault
    database: str
    number: int

    def seed(self, seed: int) -> str:
        return f"{seed}/{self.fault.key}/{self.database}/{self.number}"


def together(repeats: Iterable[Repeat]) -> list[list[Repeat]]:
    """Grouped by the service that they need."""
    groups: dict[object, list[Repeat]] = defaultdict(list)
    for repeat in repeats:
        settings = tuple(sorted((name, repr(value)) for name, value in repeat.fault.all_settings().items()))
        groups[repeat.fault.open, settings, repeat.database].append(repeat)
    return list(groups.values())


def carry_out(group: Sequence[Repeat], *, seed: int, at_once: int, record: Record, until: float = float("inf")) -> None:
    """A group on one scene. A scene that cannot be opened is one broken repeat of its first fault."""
    here = revision()
    possible = []
    for repeat in group:
        if why_not := repeat.fault.needs():
            record(Result(repeat.fault.key, repeat.database, repeat.number, "", None, skipped=why_not, revision=here))
        else:
            possible.append(repeat)
    if not possible:
        return
    first = possible[0]
    random.Random(seed).shuffle(possible)

    def about_the_scene(words: str, wrong: dict[str, str]) -> None:
        record(Result(first.fault.key, first.database, -1, words, None, broken=wrong, revision=here))

    try:
        with temporary_folder() as folder:
            opening = Opening(folder, first.fault.all_settings(), first.database)
            with first.fault.open(opening) as scene:
                _all(possible, scene, seed, at_once, until, record, here)
                if wrong := broken_at_the_end(scene):
                    about_the_scene("at the end of the scene", wrong)
    except Exception as error:  # the other faults go on
        about_the_scene("the scene itself", {"scene": f"{type(error).__name__}: {error}"[:800]})
        traceback.print_exc()


def _all(repeats: Sequence[Repeat], scene: Scene, seed: int, at_once: int, until: float, record: Record, here: str) -> None:
    stopped = threading.Event()

    def one(repeat: Repeat) -> None:
        if time.monotonic() < until and not stopped.is_set():
            result = once(repeat, scene.fresh(), repeat.seed(seed), here)
            if not stopped.is_set():  # what is seen while the service is taken down says nothing
                record(result)

    try:
        with ThreadPoolExecutor(at_once) as pool:
            beside = [pool.submit(one, repeat) for repeat in repeats if not repeat.fault.alone]
            try:
                for each in beside:
                    each.result()
            except BaseException:
                stopped.set()
                raise
        for repeat in repeats:
            if repeat.fault.alone:
                one(repeat)
    except BaseException:
        stopped.set()
        raise


def once(repeat: Repeat, scene: Scene, seed: str, here: str) -> Result:
    fault = repeat.fault
    wrong: dict[str, str] = {}
    seconds = None
    try:
        seconds = fault.carry_out(scene, random.Random(seed))
        for submitted in scene.runs:
            wait_for(lambda: scene.see(submitted.run_id)["status"] in ENDED, fault.ends_within_s, "the run has ended", 0.3)  # noqa: B023
    except Exception as error:  # what it was is recorded
        wrong["fault"] = f"{type(error).__name__}: {error}"[:800]
    if seconds is not None and seconds > fault.settle_s:
        wrong["I4"] = f"right again after {seconds:.1f} s, not {fault.settle_s:g} s"
    wrong |= broken(scene)
    load = round(os.getloadavg()[0], 1)
    return Result(fault.key, repeat.database, repeat.number, seed, seconds, wrong, dict(scene.lost), "", here, load)
