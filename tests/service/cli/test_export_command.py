"""`benchyard export` against a service."""

from __future__ import annotations

import json
from pathlib import Path

from tests.served import Service
from tests.unit.cli.command_line import Benchyard


def test_results_as_files(service: Service, benchyard: Benchyard, tmp_path: Path) -> None:
    run = benchyard("run", "-m", "demo-weak", "-n", "2", "-b", "sample", "--json").json["runs"][0]["id"]
    lines = benchyard("export", run)
    assert (lines.code, len(lines.out.splitlines())) == (0, 2)
    log = benchyard("export", run, "--json")
    assert log.json["run"]["id"] == run
    out = tmp_path / "r.csv"
    assert benchyard("export", run, "--format", "csv", "--out", str(out)).code == 0
    assert out.read_text().startswith("position,benchmark,")
    assert [path.name for path in tmp_path.glob(".*")] == []
    assert json.loads(lines.out.splitlines()[0])["benchmark"] == "sample"


def test_what_cannot_be_done_is_a_sentence(service: Service, benchyard: Benchyard) -> None:
    run = benchyard("run", "-m", "demo-weak", "-n", "1", "-b", "sample", "--json").json["runs"][0]["id"]
    assert benchyard("export", run, "--format", "xls").code == 2
    assert benchyard("export", run, "--format", "csv", "--json").code == 2
    assert benchyard("export", run, "--out", "/no/such/folder/x").code == 2
    assert benchyard("export", "ffffffff").code == 1


def test_a_run_is_graded_again(service: Service, benchyard: Benchyard) -> None:
    run = benchyard("run", "-m", "demo-weak", "-n", "2", "-b", "sample", "--json").json["runs"][0]["id"]
    ended = benchyard("regrade", run)  # this runner stores no answers
    assert (ended.code, "no stored answer" in ended.err) == (1, True)
