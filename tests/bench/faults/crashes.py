"""The orchestrator dies at a chosen step: before and after every commit and every request that changes the engine (F2)."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.bench.faults.fault import Fault
from tests.bench.faults.scene import ENDED, Opening, Scene, open_scene
from tests.faults.crash_launcher import PROGRAM, Plan
from tests.faults.killing import MODEL
from tests.faults.service import Service, wait_for

PROBLEMS, CONCURRENCY = 3, 2
SEED = 1 << 20
"""Above those that the scenes give out."""


@contextmanager
def open_mortal(opening: Opening) -> Iterator[Scene]:
    """With a service that counts its steps, and the list of all (step, before or after) in random order. Its length is
    known from a run that nobody kills."""
    with open_scene(opening) as scene:
        plan = Plan(opening.folder / "plan.json")
        scene.service.stop()
        scene.service.program, scene.service.extra = PROGRAM, plan.environment
        scene.service.start()
        plan.arm(None)
        run_id = _submit(scene.service, uuid.uuid4().hex, SEED)
        scene.service.wait_status(run_id, "completed")
        wait_for(lambda: not scene.service.containers(run_id, all_states=True), 60, "its container is gone")
        plan.disarm()
        total = len(plan.steps())
        points = [(at, after) for at in range(1, total + 1) for after in (False, True)]
        random.Random(total).shuffle(points)
        scene.extras |= {"plan": plan, "points": points, "seed": SEED}
        print(f"    {total} steps from POST to removal: {len(points)} crash points", flush=True)
        yield scene


def _submit(service: Service, key: str, seed: int) -> str:
    body = {"model_id": MODEL["slug"], "sample_size": PROBLEMS, "concurrency": CONCURRENCY, "params": {"seed": seed}}
    body["instance_type"] = "standard-1"
    answer = service.client.post("/api/container-runs", json=body, headers={"Idempotency-Key": key})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def die_at_a_step(scene: Scene, rng: random.Random) -> float | None:
    del rng  # the points are in random order
    at, after = scene.extras["points"].pop(0)
    scene.extras["points"].append((at, after))  # more repeats than points: once more
    scene.extras["seed"] += 1
    return die_at(scene, scene.extras["plan"], at, after=after, seed=scene.extras["seed"])


def die_at(scene: Scene, plan: Plan, at: int, *, after: bool, seed: int) -> float | None:
    """One run with its orchestrator dead at that step; it may end before, since steps of every round count too."""
    service, key = scene.service, uuid.uuid4().hex
    plan.arm(at, after=after)
    run_id = None
    try:
        run_id = _submit(service, key, seed)
        _until_dead_or_over(service, run_id)
    except httpx.TransportError:
        wait_for(lambda: service.gone, 60, "the service has ended")
    plan.disarm()
    died = service.gone
    if died:
        service.start()
    began = time.monotonic()
    run_id = run_id or _submit(service, key, seed)  # the same key: whatever became of the first try, it is one run
    scene.adopt(run_id, seed)
    try:
        wait_for(lambda: scene.see(run_id)["status"] in ENDED, 60, lambda: f"the run has ended: {scene.see(run_id)}")
        run = scene.see(run_id)
        assert run["status"] == "completed", f"{run['status']}: {run['reason']}"
        wait_for(lambda: not service.containers(run_id, all_states=True), 60, "its container is gone")
    except AssertionError as error:
        raise AssertionError(f"died {'after' if after else 'before'} step {at} ({plan.steps()[-1:]}): {error}") from error
    return time.monotonic() - began if died else None


def _until_dead_or_over(service: Service, run_id: str) -> None:
    def over() -> Any:
        if service.gone:
            return True
        return service.run(run_id)["status"] in ENDED and not service.containers(run_id, all_states=True)

    wait_for(over, 120, "the service has died, or the run is over")


FAULTS = [
    Fault(
        "F2", "killed before or after a commit or a request to the engine", 30, die_at_a_step, alone=True, open=open_mortal
    ),
]
