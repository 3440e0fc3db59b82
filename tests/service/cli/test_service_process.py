"""The service's process as the command sees it: who holds the data directory, and what may be deleted."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cli.commands.operating.nuke import check_deletable
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.local import service_process
from orchestrator.cli.local.teardown import own_things
from orchestrator.engines.docker.cleanup import read_host
from orchestrator.installation.identity import DataLock, Own
from orchestrator.settings import Settings
from tests.served import served
from tests.unit.cli.command_line import Benchyard

HOLD = """
import signal, sys, time
from pathlib import Path
from orchestrator.installation.identity import DataLock
lock = DataLock(Path(sys.argv[1]))
if len(sys.argv) > 2:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("held", flush=True)
time.sleep(60)
"""


def hold(data: Path, *more: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(data), *more], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    child.stdout.close()
    return child


def test_nobody_holds_it(tmp_path: Path) -> None:
    assert service_process.holder(tmp_path / "absent") is None
    assert service_process.stop(tmp_path / "absent") is None
    DataLock(tmp_path).release()
    assert service_process.holder(tmp_path) is None


def test_the_holder_is_found_and_stopped(tmp_path: Path) -> None:
    child = hold(tmp_path)
    assert service_process.holder(tmp_path) == child.pid
    assert service_process.stop(tmp_path) == child.pid
    assert child.wait(300) == -15
    assert service_process.holder(tmp_path) is None


def test_one_that_ignores_the_request_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_process, "STOP_S", 0.3)
    child = hold(tmp_path, "stubborn")
    assert service_process.stop(tmp_path) == child.pid
    assert child.wait(300) == -9


def test_a_process_that_only_has_the_number_is_left_alone(tmp_path: Path) -> None:
    lock = DataLock(tmp_path)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        (tmp_path / "lock").write_text(str(stranger.pid))
        with pytest.raises(CliError, match="another one holds the lock"):
            service_process.stop(tmp_path)
        time.sleep(0.05)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        lock.release()


def test_down_where_nothing_was_started(benchyard: Benchyard, tmp_path: Path) -> None:
    ended = benchyard("down")
    assert (ended.code, ended.out) == (0, "Nothing of Benchyard was running here.\n")
    assert not (tmp_path / "cli-data").exists()
    assert benchyard("down", "--json").json["pid"] is None


def test_up_says_what_is_wrong_with_the_engine(benchyard: Benchyard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHYARD_ENGINE", "docker")
    monkeypatch.setenv("BENCHYARD_DOCKER_HOST", "unix:///nowhere/docker.sock")
    ended = benchyard("up")
    assert ended.code == 1
    assert "No Docker engine answers at unix:///nowhere/docker.sock" in ended.err
    assert "scripts/ensure-engine" in ended.err


def test_up_tells_why_the_service_did_not_start(
    benchyard: Benchyard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BENCHYARD_ENGINE", "process")
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/no/such/place.db")
    ended = benchyard("up")
    assert ended.code == 1
    assert "The service did not start" in ended.err
    assert "benchyard.log" in ended.err
    assert (tmp_path / "cli-data" / "benchyard.log").stat().st_mode & 0o077 == 0


def test_the_names_of_an_instance(tmp_path: Path, data_template: Path) -> None:
    settings = Settings(data=tmp_path, instance="mine")
    assert [each.instance for each in own_things(settings)] == ["mine"]
    (tmp_path / "orchestrator-id").write_text("abc\n")
    assert [each.instance for each in own_things(settings)] == ["mine", "by-abc"]
    (tmp_path / "benchyard.db").write_bytes((data_template / "benchyard.db").read_bytes())
    assert [each.instance for each in own_things(Settings(data=tmp_path))] == ["by-abc"]


@pytest.mark.anyio
async def test_nothing_of_the_original_is_a_copys(new_settings: Callable[..., Settings]) -> None:
    """`down` in a copied directory, started or not, leaves the original's containers alone."""
    settings = new_settings("original")
    async with served(settings) as service:
        installation = service.services.installation
    ours = await asyncio.to_thread(own_things, settings)
    assert ours == [Own(installation.instance, installation.owner)]
    copy = settings.model_copy(update={"data": settings.data.with_name("copy")})
    shutil.copytree(settings.data, copy.data)
    assert await asyncio.to_thread(own_things, copy) == []
    (copy.data / "benchyard.db").write_bytes(b"not a database")
    assert Own(installation.instance, installation.owner) not in await asyncio.to_thread(own_things, copy)


@pytest.mark.parametrize("where", ["here", "above", "not ours"])
def test_what_is_not_surely_ours_is_not_deleted(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    if where != "not ours":
        (data / "orchestrator-id").touch()
        (data / "lock").touch()
        check_deletable(data)
    monkeypatch.chdir({"here": data, "above": data / "deep", "not ours": tmp_path}[where])
    with pytest.raises(BadUsage, match="not deleted"):
        check_deletable(data)


@pytest.mark.parametrize(
    ("changed", "here"),
    [
        pytest.param({}, sys.platform == "linux", id="this machine"),
        pytest.param({"KernelVersion": "6.6.0-linuxkit"}, False, id="Docker Desktop"),
        pytest.param({"SecurityOptions": ["name=seccomp", "name=rootless"]}, False, id="rootless"),
    ],
)
def test_whether_the_engine_is_on_this_machine(changed: dict[str, object], here: bool) -> None:
    info = {"ServerVersion": "28", "NCPU": 2, "MemTotal": 1, "KernelVersion": os.uname().release}
    assert read_host({**info, **changed}).is_this_machine is here
