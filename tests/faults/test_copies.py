"""A restored backup beside its original on one engine: neither loses a container, whatever the two are called."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import StartService
from tests.faults.service import Service, docker

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@contextlib.contextmanager
def beside(original: Service, data: Path) -> Iterator[Service]:
    """Another service with the settings of the first, but for its directory and its ports."""
    other = Service(data, instance=original.instance, runner_network=original.network, demo_latency_s=0.05)
    try:
        other.start()
        own = json.loads((data / "installation.json").read_text())
        other.instance, owner = own["instance"], own["owner"]
        yield other
    finally:
        other.close()
        for name in docker("network", "ls", "--filter", f"label=benchyard.owner={owner}", "--format", "{{.Name}}").split():
            docker("network", "rm", name, check=False)


def one_attempt(service: Service, run_id: str) -> None:
    run = service.wait_status(run_id, "completed")
    assert [(attempt["number"], attempt["reason"]) for attempt in run["attempts"]] == [(1, None)]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_hot_backup_beside_its_original(start_service: StartService, tmp_path: Path) -> None:
    original = start_service(demo_latency_s=1.0)
    first = original.submit(sample_size=12)
    original.wait_items(first, 1)
    data = tmp_path / "restored"
    shutil.copytree(original.data, data, ignore=shutil.ignore_patterns("benchyard.db*"))
    with (
        contextlib.closing(sqlite3.connect(original.data / "benchyard.db")) as source,
        contextlib.closing(sqlite3.connect(data / "benchyard.db")) as target,
    ):
        source.backup(target)
    with beside(original, data) as copy:
        assert copy.client.get("/readyz").json()["copy_of"]["instance"] == original.instance
        assert copy.instance != original.instance
        runs = [(original, original.submit(sample_size=6)), (copy, copy.submit(sample_size=6))]
        for service, run_id in [(original, first), *runs]:
            one_attempt(service, run_id)
        assert copy.run(first)["status"] == "running", "what the copy knows of the original's run"
        copy.stop()
        assert original.client.get("/readyz").status_code == 200
        one_attempt(original, original.submit(sample_size=2))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_two_installations_of_one_name(start_service: StartService, tmp_path: Path) -> None:
    """As two clones that run the same compose file have: two databases, one `BENCHYARD_INSTANCE`, one network name."""
    one = start_service(demo_latency_s=1.0)
    first = one.submit(sample_size=8)
    one.wait_items(first, 1)
    with beside(one, tmp_path / "namesake") as two:
        assert two.instance == one.instance
        assert two.client.get("/readyz").json()["copy_of"] is None
        second = two.submit(sample_size=6)
        one_attempt(two, second)
        one_attempt(one, first)
        assert "are left alone" in two.log_tail() or "are left alone" in one.log_tail()
