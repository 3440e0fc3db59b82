"""Published benchmarks from the command line: listed, shown, and added by name, with and without a service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.benchmarks.service import parsed
from tests.benchmark_records import published_rows
from tests.benchmark_records.published_on_hub import repositories
from tests.hub_server import Hub, serving_hub
from tests.served import Service
from tests.unit.cli.command_line import Benchyard


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with serving_hub() as server:
        server.repos = repositories()
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
        yield server


def test_listed_shown_and_added(hub: Hub, service: Service, benchyard: Benchyard) -> None:
    listed = benchyard("benchmarks", "catalogue")
    assert "gpqa_diamond" in listed.out
    assert "CC-BY-4.0, gated" in listed.out
    shown = benchyard("benchmarks", "catalogue", "arc_easy")
    assert shown.out.startswith("# 2376 problems")
    assert parsed(shown.out).name == "arc_easy", "what is printed can be saved and added"
    assert "Contest problems" in benchyard("benchmarks", "catalogue", "livecodebench").out
    added = benchyard("benchmarks", "add", "arc_easy")
    assert added.code == 0, added.err
    assert "benchyard run --benchmark arc_easy" in added.out
    assert "arc_easy (added)" in benchyard("benchmarks", "catalogue").out
    assert benchyard("benchmarks", "show", "arc_easy", "--json").json["problems"] == len(published_rows.ARC)


def test_the_judge_is_named_when_it_is_needed(hub: Hub, service: Service, benchyard: Benchyard) -> None:
    assert "--judge MODEL" in benchyard("benchmarks", "catalogue", "simpleqa").out
    assert "--judge MODEL" in benchyard("benchmarks", "add", "simpleqa").err
    added = benchyard("benchmarks", "add", "simpleqa", "--judge", "demo-strong")
    assert added.code == 0, added.err
    shown = benchyard("benchmarks", "show", "simpleqa", "--json").json
    assert shown["definition"]["judge"]["grader"]["model"] == "demo-strong"


def test_what_is_in_no_catalogue_and_no_file(service: Service, benchyard: Benchyard) -> None:
    assert "The catalogue has no benchmark 'nothing'" in benchyard("benchmarks", "add", "nothing").err
    assert "nothing.yaml" in benchyard("benchmarks", "add", "nothing.yaml").err


def test_without_a_service(hub: Hub, benchyard: Benchyard) -> None:
    added = benchyard("datasets", "add", "math_500", "--json")
    assert added.code == 0, added.err
    assert added.json["problems"] == len(published_rows.MATH_500)
    refused = benchyard("datasets", "add", "math_500", "--revision", "main")
    assert refused.code == 1
    assert "fixes what is taken, so revision cannot be chosen" in refused.err
