"""Much at once: 500 schedules due in one minute (F21), 500 clients of live events that behave badly (F22)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx

from tests.bench.faults.clocks import open_shifted, save_schedule
from tests.bench.faults.fault import QUICK, Fault
from tests.bench.faults.scene import ENDED, Opening, Scene, open_scene
from tests.faults.many_streams import ManyStreams, descriptors, resident_mib
from tests.faults.service import Service, wait_for

SCHEDULES, STREAMS = 500, 500
DUE = "17 4 * * *"
LOST_DESCRIPTORS, LOST_MIB = 10, 50
"""What may be more after 500 streams than before: connections of the database, buffers that the process keeps."""
KEPT = 12
"""So many of the runs are carried out; the others are cancelled, since 500 containers take many minutes."""


@contextmanager
def open_with_schedules(opening: Opening, count: int = SCHEDULES) -> Iterator[Scene]:
    with open_shifted(opening) as scene:
        for number in range(count):
            slug = f"scheduled-{number}"
            body = {"slug": slug, "provider": "openai", "name": "counting", "input_price": 1.0, "output_price": 2.0}
            assert scene.service.client.post("/api/models", json=body).status_code == 201
            save_schedule(scene.service, DUE, slug, sample_size=1)
        scene.extras["schedules"] = count
        yield scene


@contextmanager
def open_for_streams(opening: Opening) -> Iterator[Scene]:
    """A service of its own, whose descriptors and memory nobody else needs."""
    with open_scene(opening) as scene:
        yield scene


class Latencies:
    """Asks the API for the newest runs, all the time, until the block ends."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.seconds: list[float] = []
        self.bad: list[str] = []

    def __enter__(self) -> Latencies:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(120)

    def _ask(self) -> None:
        with httpx.Client(base_url=self._service.url, headers=self._service.client.headers, timeout=60) as client:
            while not self._over.wait(0.05):
                began = time.monotonic()
                try:
                    status = client.get("/api/container-runs?limit=20").status_code
                except httpx.TransportError as error:
                    self.bad.append(repr(error))
                    continue
                self.seconds.append(time.monotonic() - began)
                if status != 200:
                    self.bad.append(str(status))

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]


def all_due_at_once(scene: Scene, rng: random.Random, kept: int = KEPT, p99_s: float | None = 1) -> float:
    service, clock, count = scene.service, scene.extras["clock"], scene.extras["schedules"]
    now = clock.now()
    before = {row["id"] for row in scene.rows("SELECT id FROM container_runs")}
    due = now.replace(hour=4, minute=17, second=0, microsecond=0)
    due += timedelta(days=1) if due <= now + timedelta(minutes=1) else timedelta()
    with Latencies(service) as latencies:
        clock.set(clock.shift + (due - now) - timedelta(seconds=rng.uniform(2, 5)))
        began = time.monotonic()
        most = 0
        new: list[str] = []
        while len(new) < count:
            assert time.monotonic() - began < 600, f"{len(new)} of {count} have fired"
            most = max(most, len(service.containers()))
            new = [
                row["id"]
                for row in scene.rows("SELECT id FROM container_runs ORDER BY created_at")
                if row["id"] not in before
            ]
            time.sleep(0.2)
        seconds = time.monotonic() - began
        for run_id in new[kept:]:
            service.client.post(f"/api/container-runs/{run_id}/cancel")
        while any(service.run(run_id)["status"] not in ENDED for run_id in new[:kept]):
            most = max(most, len(service.containers()))
            time.sleep(0.5)
    for run_id in [*new[:kept], *rng.sample(new[kept:], 3)]:
        scene.adopt(run_id)
    wait_for(lambda: not service.containers(all_states=True), 90, "nothing is left")
    assert len(new) == count, f"{len(new)} runs for {count} schedules"
    assert most <= int(QUICK["max_instances"]), f"{most} containers at once"  # type: ignore[call-overload]
    assert not latencies.bad, latencies.bad[:5]
    assert p99_s is None or latencies.p99 < p99_s, f"p99 {latencies.p99:.2f} s over {len(latencies.seconds)} requests"
    return seconds


def many_streams(scene: Scene, rng: random.Random, count: int = STREAMS, seconds: float = 10) -> float:
    service = scene.service
    if "before" not in scene.extras:  # what the first ones leave for good is no leak: it does not grow with the next ones
        _streams(scene, rng, count, 2)
        time.sleep(1)
        scene.extras["before"] = descriptors(service), resident_mib(service)
    before, mib = scene.extras["before"]
    _streams(scene, rng, count, seconds)
    began = time.monotonic()
    wait_for(
        lambda: descriptors(service) <= before + LOST_DESCRIPTORS,
        30,
        lambda: f"{descriptors(service)} descriptors, {before} before",
    )
    back = time.monotonic() - began
    now_mib = resident_mib(service)
    assert now_mib <= mib + LOST_MIB, f"{now_mib:.0f} MiB, {mib:.0f} before"
    return back


def _streams(scene: Scene, rng: random.Random, count: int, seconds: float) -> None:
    scene.submit(8)
    streams = ManyStreams(scene.service, rng)
    try:
        streams.open(count)
        streams.churn(seconds)
        assert not streams.refused, f"{streams.refused} of {streams.opened} streams were refused"
        assert descriptors(scene.service) > count // 2, "the streams are not there"
    finally:
        streams.close()


FAULTS = [
    Fault("F21", f"{SCHEDULES} schedules due in the same minute", 60, all_due_at_once, alone=True, open=open_with_schedules),
    Fault("F22", f"{STREAMS} streams: reset, frozen, reconnecting", 30, many_streams, alone=True, open=open_for_streams),
]
