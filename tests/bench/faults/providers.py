"""A provider that refuses, fails, talks nonsense, breaks off or talks for ever (F24)."""

from __future__ import annotations

import random

from tests.bench.faults.fault import Fault
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import Scene
from tests.faults.provider_troubles import KINDS

PASSING = tuple(kind for kind in KINDS if kind not in ("silence", "100 MB"))
TIMES = 3


def troubled(scene: Scene, rng: random.Random) -> float | None:
    """Every question meets up to three troubles before it is answered: all items count in the end, in one attempt, and every
    call is settled once."""
    seed = scene.next_seed()
    kinds = [rng.choice(PASSING) for _ in range(TIMES)]
    scene.provider.make_trouble(seed, kinds, TIMES)
    run_id = scene.submit(6, params={"seed": seed})
    run = scene.service.wait_status(run_id, "completed")
    assert run["attempt"] == 1
    assert not {"provider_error", "infra_error"} & set(run["outcomes"]), (kinds, run["outcomes"])
    _each_settled_once(scene, run_id, 6)
    return None


def too_much(scene: Scene, rng: random.Random) -> float | None:
    """An answer of 100 MB to every question: not stored, not asked again, and the run ends with a reason."""
    seed = scene.next_seed()
    scene.provider.make_trouble(seed, ["100 MB"], 10**6)
    run_id = scene.submit(3, concurrency=rng.choice([1, 3]), params={"seed": seed})
    run = scene.service.wait_status(run_id, "failed")
    assert run["reason"] == "provider_error", run["reason"]
    asked = len(scene.provider.questions(seed))
    assert asked <= 3, f"asked {asked} times"
    return None


def _each_settled_once(scene: Scene, run_id: str, items: int) -> None:
    states = scene.rows("SELECT state, count(*) AS n FROM gateway_calls WHERE run_id = :run GROUP BY state", run=run_id)
    assert [(row["state"], row["n"]) for row in states] == [("settled", items)], states


FAULTS = [
    Fault("F24", "three troubles before every answer", 60, troubled, open=open_kinds),
    Fault("F24", "answers of 100 MB", 60, too_much, open=open_kinds),
]
