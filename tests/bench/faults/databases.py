"""The database in trouble: PostgreSQL stopped, cut off during a COMMIT, SQLite locked by somebody else (F11, F12)."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx

from tests.bench.faults.fault import POSTGRESQL, SQLITE, Fault
from tests.bench.faults.scene import Opening, Scene, around_service
from tests.faults.asking import Asking
from tests.faults.counting_provider import CountingProvider
from tests.faults.cutting_postgres import CuttingProxy
from tests.faults.locking import locked
from tests.faults.service import wait_for
from tests.postgres_from_wheel import PostgresFromWheel


def slugs(scene: Scene) -> set[str]:
    return {row["slug"] for row in scene.rows("SELECT slug FROM models")}


def postgres_stopped(scene: Scene, rng: random.Random) -> float:
    assert scene.postgres is not None
    scene.running(rng)
    with Asking(scene.service, uuid.uuid4().hex[:8]) as asking:
        scene.postgres.stop()
        time.sleep(rng.uniform(4, 12))
        assert not scene.service.gone
        assert scene.service.client.get("/healthz").status_code == 200
        scene.postgres.start()
        began = time.monotonic()
        asking.until_stored()
        seconds = time.monotonic() - began
    asking.check(slugs(scene))
    return seconds


@contextmanager
def open_behind_proxy(opening: Opening) -> Iterator[Scene]:
    """The service reaches PostgreSQL through a proxy; the checks do not."""
    with ExitStack() as stack:
        postgres = PostgresFromWheel()
        stack.callback(postgres.close)
        postgres.start()
        proxy = stack.enter_context(CuttingProxy(postgres).serving())
        provider = CountingProvider(opening.folder / "provider.log", opening.provider_latency_s)
        stack.enter_context(provider)
        name = postgres.create()
        scene = stack.enter_context(around_service(opening, provider, proxy.url(name), postgres))
        scene.database_url = postgres.url(name)
        scene.extras["proxy"] = proxy
        yield scene


def cut_during_commit(scene: Scene, rng: random.Random) -> float:
    """Some connections are cut at a COMMIT while a run works and things are created."""
    proxy: CuttingProxy = scene.extras["proxy"]
    scene.running(rng, longest_s=2)
    cuts = rng.randint(3, 8)
    with Asking(scene.service, uuid.uuid4().hex[:8], every_s=0.05) as asking:
        for _ in range(cuts):
            proxy.cut(answer_lost=rng.random() < 0.5)
            wait_for(lambda: not proxy.waiting, 60, "a COMMIT to cut")
            time.sleep(rng.uniform(0, 0.3))
        began = time.monotonic()
        asking.until_stored()
        seconds = time.monotonic() - began
        again = _one_run_whatever_was_lost(scene, proxy)
    doubtful = [word for word in asking.wrong if word.startswith("409")]
    assert not doubtful, doubtful
    asking.check(slugs(scene))
    scene.adopt(again)
    return seconds


def _one_run_whatever_was_lost(scene: Scene, proxy: CuttingProxy) -> str:
    """A POST whose COMMIT gets through but whose answer does not, repeated with its key: the same run, not a second one."""
    key, body = uuid.uuid4().hex, {"model_id": "demo-weak", "sample_size": 2, "instance_type": "standard-1"}
    before = len(scene.rows("SELECT id FROM container_runs"))
    proxy.cut(answer_lost=True)
    answer: httpx.Response | None = None
    while answer is None or answer.status_code == 503:
        answer = scene.service.client.post("/api/container-runs", json=body, headers={"Idempotency-Key": key})
    assert answer.status_code in (200, 202), answer.text
    assert len(scene.rows("SELECT id FROM container_runs")) == before + 1
    return str(answer.json()["run_id"])


def sqlite_locked(scene: Scene, rng: random.Random, seconds_locked: float = 10) -> float:
    scene.running(rng)
    with Asking(scene.service, uuid.uuid4().hex[:8]) as asking:
        with locked(scene.service.data / "benchyard.db"):
            time.sleep(seconds_locked)
        began = time.monotonic()
        asking.until_stored()
        seconds = time.monotonic() - began
    asking.check(slugs(scene))
    assert set(asking.reads) == {200}, "readers need not wait for a lock of a writer"
    return seconds


SHORTER = "60 s to 4 to 12 s"
FAULTS = [
    Fault("F11", "PostgreSQL stopped", 20, postgres_stopped, alone=True, databases=(POSTGRESQL,), shortened=SHORTER),
    Fault(
        "F11",
        "connections cut during COMMIT",
        20,
        cut_during_commit,
        alone=True,
        databases=(POSTGRESQL,),
        open=open_behind_proxy,
    ),
    Fault("F12", "SQLite locked for 10 s by another process", 15, sqlite_locked, alone=True, databases=(SQLITE,)),
]
