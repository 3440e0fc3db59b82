"""Generated code that attacks: memory, processes, output, disk, time (F15)."""

from __future__ import annotations

import random
from typing import Any

from tests.bench.faults.fault import Fault
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import Scene
from tests.sandbox.hostile.disk import DISK
from tests.sandbox.hostile.floods import OUTPUT, TIME
from tests.sandbox.hostile.memory import MEMORY
from tests.sandbox.hostile.processes import PROCESSES

GROUPS = {"memory": MEMORY, "processes": PROCESSES, "output": OUTPUT, "disk": DISK, "time": TIME}
ITEMS = 5


def attacked(scene: Scene, rng: random.Random) -> float | None:
    """A run whose answers are hostile programs, one of each kind drawn at random, beside one of honest answers: every item
    gets an outcome of its own, nobody needs another attempt, and the neighbour's results are what they are alone."""
    reference = scene.once("outcomes of an honest run", lambda: _outcomes(scene, scene.submit(ITEMS, concurrency=1)))
    chosen = {group: rng.choice(programs) for group, programs in GROUPS.items()}
    seed = scene.next_seed()
    scene.provider.give_programs(seed, [hostile.source.replace("```", "") for hostile in chosen.values()])
    attacker = scene.submit(ITEMS, concurrency=2, params={"seed": seed}, seed_of_questions=seed)
    neighbour = scene.submit(ITEMS, concurrency=1)
    words = {group: hostile.name for group, hostile in chosen.items()}
    outcomes = _outcomes(scene, attacker)
    assert "passed" not in outcomes.values(), (words, outcomes)
    assert _outcomes(scene, neighbour) == reference, words
    return None


def _outcomes(scene: Scene, run_id: str) -> dict[Any, str]:
    run = scene.service.wait_status(run_id, "completed")
    assert run["attempt"] == 1, [each["reason"] for each in run["attempts"]]
    return {(item["benchmark"], item["problem_id"]): item["outcome"] for item in scene.service.items(run_id)}


FAULTS = [Fault("F15", "hostile programs beside an honest run", 5, attacked, open=open_kinds)]
