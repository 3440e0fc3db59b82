"""An upgrade under a live run: the database is of an older version, its migration dies half-way (F25)."""

from __future__ import annotations

import random
import time

from alembic import command

from orchestrator.db.migrate import alembic_config, known_revisions, newest_revision, stored_revision
from orchestrator.db.session import database_url as full_url
from tests.bench.faults.fault import Fault
from tests.bench.faults.scene import Scene
from tests.faults.crash_launcher import PROGRAM, Plan
from tests.faults.service import SERVE, wait_for

BACK = 4
"""At most so many migrations: those before them took something away that a run of today has."""


def upgraded_under_a_run(scene: Scene, rng: random.Random) -> float:
    service = scene.service
    url = full_url(scene.database_url, service.data)
    plan = Plan(scene.folder / "plan.json")
    run_id = scene.submit(36)
    run = service.wait_items(run_id, 1)
    time.sleep(rng.uniform(0, 2))
    service.kill()
    older = sorted(known_revisions())[-1 - rng.randint(1, BACK)]
    command.downgrade(alembic_config(url), older)
    # Killed at a commit of the migration, before or after it, then started again
    plan.arm(rng.randint(1, 3), after=rng.random() < 0.5)
    service.program, service.extra = PROGRAM, plan.environment
    try:
        service.begin()
        wait_for(lambda: service.gone, 120, "it dies in its migration")
        assert plan.steps(), "it died before any step"
    finally:
        plan.disarm()
        service.program, service.extra = SERVE, {}
    half_way = stored_revision(url)
    service.start()
    began = time.monotonic()
    assert stored_revision(url) == newest_revision()
    done = run["progress"]["done"]
    wait_for(lambda: scene.see(run_id)["progress"]["done"] > done, 60, "its runner goes on")
    seconds = time.monotonic() - began
    ended = service.wait_status(run_id, "completed")
    assert ended["attempt"] == run["attempt"], f"{older} -> {half_way}: {ended['attempts'][0]['reason']}"
    return seconds


FAULTS = [
    Fault("F25", "upgraded under a run, the migration killed half-way", 30, upgraded_under_a_run, alone=True),
]
