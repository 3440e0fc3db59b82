"""The database's disk is full (F10): refusals, never a false acknowledgement, and all goes on once there is room."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from tests.bench.faults.databases import slugs
from tests.bench.faults.engines import cannot
from tests.bench.faults.fault import POSTGRESQL, Fault
from tests.bench.faults.scene import Opening, Scene, around_service
from tests.faults.asking import Asking
from tests.faults.counting_provider import CountingProvider
from tests.faults.service import wait_for
from tests.faults.small_disk import MIB, SmallDisk
from tests.postgres_from_wheel import PostgresFromWheel

DISK_MIB, POSTGRES_DISK_MIB = 96, 600
ROOM_MIB = 8


@contextmanager
def open_on_small_disk(opening: Opening) -> Iterator[Scene]:
    """The data directory with the SQLite database, or the whole PostgreSQL server, on a disk of its own."""
    with ExitStack() as stack:
        on_postgres = opening.database == POSTGRESQL
        disk = stack.enter_context(SmallDisk(opening.folder, POSTGRES_DISK_MIB if on_postgres else DISK_MIB))
        provider = CountingProvider(opening.folder / "provider.log", opening.provider_latency_s)
        stack.enter_context(provider)
        postgres, url = None, None
        if on_postgres:
            opening.folder.chmod(0o755)  # the server may run as another user
            postgres = PostgresFromWheel(disk.path / "pg")
            stack.callback(postgres.close)
            postgres.start()
            url = postgres.url(postgres.create())
        else:
            opening = replace(opening, folder=disk.path)
        scene = stack.enter_context(around_service(opening, provider, url, postgres))
        scene.extras["disk"] = disk
        yield scene


def database_disk_full(scene: Scene, rng: random.Random) -> float:
    disk: SmallDisk = scene.extras["disk"]
    scene.running(rng)
    with Asking(scene.service, uuid.uuid4().hex[:8], every_s=0.02) as asking:
        disk.fill()
        try:
            wait_for(lambda: asking.refused, 120, lambda: f"a write is refused; {disk.free} bytes are free")
            if scene.postgres is None:
                wait_for(lambda: "disk" in _troubles(scene), 60, "it says that the disk is full")
                waiting = scene.service.client.get("/api/container-runs?limit=1")
                assert waiting.status_code == 200, waiting.text
            time.sleep(rng.uniform(1, 6))
            assert scene.service.client.get("/healthz").status_code == 200
        finally:
            disk.make_room()
        if scene.postgres is not None:
            scene.postgres.start_again_if_it_ended()
        began = time.monotonic()
        asking.until_stored()
        seconds = time.monotonic() - began
    asking.check(slugs(scene))
    if scene.postgres is None:
        (row,) = scene.rows("PRAGMA integrity_check")
        assert row["integrity_check"] == "ok", row
    return seconds


def _troubles(scene: Scene) -> str:
    return " ".join(scene.service.client.get("/readyz").json()["problems"])


FAULTS = [
    Fault(
        "F10",
        "database's disk full",
        30,
        database_disk_full,
        alone=True,
        settings={"min_free_disk_bytes": ROOM_MIB * MIB, "min_free_disk_share": 0},
        open=open_on_small_disk,
        needs=cannot,
    ),
]
