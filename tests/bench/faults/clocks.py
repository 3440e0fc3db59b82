"""The orchestrator away for hours, and its clock set while it runs (F20). The clock is libfaketime's."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from tests.bench.faults.fault import Fault
from tests.bench.faults.scene import Opening, Scene, open_scene
from tests.faults.fake_time import FakeTime
from tests.faults.killing import MODEL
from tests.faults.service import Service, wait_for

MINUTE = timedelta(minutes=1)
GRACE = timedelta(hours=1)
STEPS = (timedelta(hours=1), timedelta(hours=-1), timedelta(days=1), timedelta(days=-1))


@contextmanager
def open_shifted(opening: Opening) -> Iterator[Scene]:
    with open_scene(opening) as scene:
        clock = FakeTime(opening.folder / "clock")
        scene.service.stop()
        scene.service.extra |= clock.environment
        scene.service.start()
        scene.extras["clock"] = clock
        yield scene


def save_schedule(service: Service, cron: str, model: str = str(MODEL["slug"]), **fields: Any) -> None:
    body = {"model_id": model, "cron_expression": cron, "sample_size": 2, "paused": False, **fields}
    answer = service.client.post("/api/schedules", json=body)
    assert answer.status_code in (200, 201), answer.text


def fires_of(service: Service, model: str = str(MODEL["slug"]), pages: int = 1) -> dict[datetime, dict[str, Any]]:
    """The newest, by instant."""
    found: dict[datetime, dict[str, Any]] = {}
    after = None
    for _ in range(pages):
        params = {"limit": "300"} | ({"after": after} if after else {})
        page = service.client.get(f"/api/schedules/{model}/fires", params=params).json()
        found |= {datetime.fromisoformat(item["instant"]): item for item in page["items"]}
        after = page["next"]
        if after is None:
            break
    return found


def check_gap(fires: dict[datetime, dict[str, Any]], first: datetime, last: datetime, back: datetime) -> Counter[str]:
    """The minutes of a gap: each has one row, with the outcome that the policy says; at most one run for all of them."""
    gap = {instant: fire for instant, fire in fires.items() if first <= instant <= last}
    minutes = int((last - first) / MINUTE) + 1
    assert len(gap) == minutes, f"{len(gap)} rows for {minutes} due minutes"
    for instant, fire in gap.items():
        age = back - instant
        if age > GRACE + 5 * MINUTE:
            assert fire["outcome"] == "skipped_misfire", (age, fire)
        elif 5 * MINUTE < age < GRACE - 5 * MINUTE:
            assert fire["outcome"] == "coalesced", (age, fire)
    runs = [fire["run_id"] for fire in gap.values() if fire["run_id"]]
    assert len(runs) <= 1, f"{len(runs)} runs for one gap"
    return Counter(fire["outcome"] for fire in gap.values())


def away_for_hours(scene: Scene, rng: random.Random) -> float:
    service, clock = scene.service, scene.extras["clock"]
    save_schedule(service, "* * * * *")
    gone_at = clock.now()
    service.kill()
    clock.set(clock.shift + timedelta(hours=3, seconds=rng.uniform(0, 60)))
    first = gone_at.replace(second=0, microsecond=0) + 2 * MINUTE
    last = clock.now().replace(second=0, microsecond=0) - MINUTE
    service.start()
    back, began = clock.now(), time.monotonic()
    wait_for(lambda: last in fires_of(service), 60, "the gap is written down")
    seconds = time.monotonic() - began
    fires = fires_of(service, pages=2)
    service.client.patch(f"/api/schedules/{MODEL['slug']}/pause").raise_for_status()
    check_gap(fires, first, last, back)
    for instant, fire in fires_of(service).items():
        if fire["run_id"] and instant >= first:
            scene.adopt(fire["run_id"])
            service.wait_status(fire["run_id"], "completed")
    return seconds


def clock_set(scene: Scene, rng: random.Random) -> float:
    """A run is under way, a schedule fires each hour; somebody sets the clock by an hour or a day."""
    service, clock = scene.service, scene.extras["clock"]
    save_schedule(service, "30 * * * *")
    run_id = scene.submit(24)
    run = service.wait_items(run_id, 1)  # how long a runner takes to begin is not the clock's matter
    time.sleep(rng.uniform(0, 2))
    before = fires_of(service)
    step = rng.choice(STEPS)
    clock.set(clock.shift + step)
    began = time.monotonic()
    done = run["progress"]["done"]
    wait_for(
        lambda: scene.see(run_id)["progress"]["done"] > done or scene.see(run_id)["status"] != "running", 60, "it goes on"
    )
    seconds = time.monotonic() - began
    ended = service.wait_status(run_id, "completed")
    assert ended["attempt"] == run["attempt"], f"a step of {step} cost an attempt: {ended['attempts'][0]['reason']}"
    hours = max(int(step / timedelta(hours=1)), 0)
    if hours:
        wait_for(lambda: len(fires_of(service)) >= len(before) + hours, 60, "the hours in between are written down")
    service.client.patch(f"/api/schedules/{MODEL['slug']}/pause").raise_for_status()
    new = {instant: fire for instant, fire in fires_of(service).items() if instant not in before}
    assert len(new) <= hours + 1, f"{len(new)} rows for {hours} due hours"
    made = [fire["run_id"] for fire in new.values() if fire["run_id"]]
    assert len(made) <= 2, f"{len(made)} runs at once after a step of {step}"
    for each in made:
        scene.adopt(each)
        service.wait_status(each, "completed")
    return seconds


FAULTS = [
    Fault(
        "F20", "orchestrator killed, back after 3 h with 180 due minutes", 20, away_for_hours, alone=True, open=open_shifted
    ),
    Fault("F20", "clock set by an hour or a day under a run", 20, clock_set, alone=True, open=open_shifted),
]
