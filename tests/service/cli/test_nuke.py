"""`nuke`: what is on the engine is a stand-in here, since a real one may hold somebody's work."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest
import typer

from orchestrator.cli.local import teardown
from orchestrator.engines.docker import cleanup as docker_cleanup
from orchestrator.engines.docker.cleanup import Belongings
from tests.unit.cli.command_line import Benchyard


class Engine:
    """Holds two instances' things."""

    found = Belongings(("benchyard-run-1-a1",), ("benchyard-runners",), ("benchyard_data",))
    mine = Belongings(("benchyard-run-1-a1",))
    swept: list[Belongings]

    def __init__(self, _: str | None = None) -> None: ...

    def find(self, instance: str | None = None, owner: str | None = None) -> Belongings:
        if self.swept and instance is not None:
            return Belongings()
        return {None: Belongings() if self.swept == [self.found] else self.found, "mine": self.mine}.get(
            instance, Belongings()
        )

    def sweep(self, found: Belongings) -> None:
        self.swept.append(found)

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> type[Engine]:
    Engine.swept = []
    for module in (docker_cleanup, teardown):
        monkeypatch.setattr(module, "DockerCleanup", Engine)
    monkeypatch.setenv("BENCHYARD_ENGINE", "docker")
    return Engine


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda _: answer)


def test_everything_of_ours_goes(benchyard: Benchyard, engine: type[Engine]) -> None:
    ended = benchyard("nuke", "--yes", "--all-instances", "--json")
    assert ended.code == 0
    assert ended.json["volumes"] == ["benchyard_data"]
    assert engine.swept == [engine.found]


def test_other_instances_stay_unless_they_shall_go(
    benchyard: Benchyard, engine: type[Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHYARD_INSTANCE", "mine")
    ended = benchyard("nuke", "--yes")
    assert (ended.code, engine.swept) == (0, [engine.mine])
    assert "Removed 1 containers, 0 networks, 0 volumes" in ended.out
    assert "of other instances stay; --all-instances removes them" in " ".join(ended.err.split())


def test_it_asks_first_and_no_means_no(benchyard: Benchyard, engine: type[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    at_a_terminal(monkeypatch, answer=False)
    ended = benchyard("nuke", "--all-instances")
    assert ended.code == 1
    assert "benchyard-run-1-a1" in ended.out
    assert "are lost for good" in ended.out
    assert "Nothing was removed." in ended.err
    assert engine.swept == []


def test_yes_and_the_data_too(benchyard: Benchyard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = tmp_path / "cli-data"
    data.mkdir()
    for name in ("orchestrator-id", "lock", "benchyard.log"):
        (data / name).touch()
    at_a_terminal(monkeypatch, answer=True)
    ended = benchyard("nuke", "--data", "--all-instances")
    assert ended.code == 0
    assert "Removed 1 containers, 1 networks, 1 volumes" in ended.out
    assert not data.exists()


def test_a_directory_that_is_not_ours_stops_it_before_anything_is_removed(
    benchyard: Benchyard, engine: type[Engine], tmp_path: Path
) -> None:
    (tmp_path / "cli-data").mkdir()
    assert benchyard("nuke", "--yes", "--data").code == 2
    assert engine.swept == []


def test_archives_in_the_object_store_stay_unless_they_shall_go(
    benchyard: Benchyard, monkeypatch: pytest.MonkeyPatch, s3_server: str
) -> None:
    for name, value in {
        "BUCKET": "archives",
        "ENDPOINT": s3_server,
        "ACCESS_KEY_ID": "id",
        "SECRET_ACCESS_KEY": "s",
    }.items():
        monkeypatch.setenv(f"BENCHYARD_S3_{name}", value)
    for key in ("benchyard/r-1/result.tar.gz", "benchyard/batches/b/batch.tar.gz", "elsewhere/notes.txt"):
        httpx.put(f"{s3_server}/archives/{key}", content=b"x" * 1000).raise_for_status()
    ended = benchyard("nuke", "--yes")
    assert "Archives stay: 2 in s3://archives/benchyard/" in ended.err
    gone = benchyard("nuke", "--yes", "--archives", "--json")
    assert (gone.json["archives"], gone.json["archives_left"]) == (2, 0)
    left = httpx.get(f"{s3_server}/archives?list-type=2").text
    assert "elsewhere/notes.txt" in left
    assert "benchyard/" not in left
    monkeypatch.setenv("BENCHYARD_S3_ENDPOINT", "http://127.0.0.1:9")
    assert benchyard("nuke", "--yes", "--archives").code == 1
    assert "is not known" in benchyard("nuke", "--yes").err
