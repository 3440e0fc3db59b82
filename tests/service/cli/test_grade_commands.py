"""`benchyard grade` against a service with a runner that passes every other item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.commands.measuring.grading import summarise
from tests.served import Service
from tests.unit.cli.command_line import Benchyard


def samples(service: Service, tmp_path: Path, *more: str) -> Path:
    ids = [entry.id for entry in service.services.catalogue.entries("sample")]
    rows = [{"question_id": each, "code_list": ["print(1)", "print(2)"]} for each in ids[:2]]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "".join(f"{line}\n" for line in more))
    return path


def test_answers_are_graded_and_written(service: Service, benchyard: Benchyard, tmp_path: Path) -> None:
    path = samples(service, tmp_path, "{broken", '{"question_id": "unheard-of", "code_list": ["x"]}')
    out = tmp_path / "verdicts.jsonl"
    ended = benchyard("grade", "--benchmark", "sample", "--samples", str(path), "--out", str(out), "--json")
    assert ended.code == 0, ended.err
    summary = ended.json
    assert (summary["total"], summary["passed"]) == (4, 2)
    assert summary["outcomes"] == {"passed": 2, "wrong_answer": 2}
    assert summary["left_out"] == 2
    assert "line 3" in summary["left_out_lines"][0]
    assert "unheard-of" in summary["left_out_lines"][1]
    assert summary["unattempted"] == len(summary["unattempted_ids"]) > 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["sample_index"] for row in rows] == [0, 1, 0, 1]
    assert {row["outcome"] for row in rows} == {"passed", "wrong_answer"}
    assert all("parity_outcome" not in row and row["problem_id"] for row in rows)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_people_are_told_what_is_missing(service: Service, benchyard: Benchyard, tmp_path: Path) -> None:
    ended = benchyard("grade", "-b", "sample", "-s", str(samples(service, tmp_path, "{broken")))
    assert ended.code == 0
    assert "2 of 4" in ended.out
    assert "line 3" in ended.err
    assert "have no answer" in ended.err


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("-b", "sample", "-s", "/no/such/file"), 2, "There is no file"),
        (("-b", "sample", "-s", "FILE", "-o", "/no/such/folder/x"), 2, "There is no directory"),
        (("-b", "sample", "-s", "FILE", "--engine", "podman"), 2, "--engine 'podman'"),
        (("-b", "sample", "-s", "FILE", "--engine", "process"), 2, "one runs here"),
        (("-b", "absent", "-s", "FILE"), 1, "no benchmark 'absent'"),
        (("-b", "sample", "-s", "FILE", "--instance-type", "huge"), 1, "no instance type"),
    ],
    ids=["no file", "no folder", "engine", "service", "benchmark", "type"],
)
def test_what_cannot_be_done_is_a_sentence(
    service: Service, benchyard: Benchyard, tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    file = str(samples(service, tmp_path))
    ended = benchyard("grade", *(file if word == "FILE" else word for word in words))
    assert (ended.code, ended.out) == (code, "")
    assert sentence in ended.err


def test_without_a_service_a_wrong_benchmark_is_a_sentence(benchyard: Benchyard, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"task_id": "x", "completion": "y"}\n')
    ended = benchyard("grade", "-b", "absent", "-s", str(path), "--engine", "process")
    assert ended.code == 1
    assert "no benchmark 'absent'" in ended.err
    assert [each.name for each in (tmp_path / "cli-data").iterdir()] == ["packs"]


def test_the_summary_counts_both_ways_of_judging() -> None:
    accepted = dict.fromkeys(("benchmark", "pack_digest", "problems", "unattempted", "unattempted_ids", "left_out"), 0)
    accepted["left_out_lines"] = 0
    run: dict[str, Any] = {"id": "r", "status": "completed", "score": None}
    both = [("passed", "wrong_answer"), ("wrong_answer", "passed"), ("passed", "passed")]
    items = [{"outcome": one, "parity_outcome": other, "fragile": False} for one, other in both]
    summary = summarise(accepted, run, items)
    assert (summary["total"], summary["passed"], summary["parity_passed"]) == (3, 2, 2)
    assert summary["parity_outcomes"] == {"passed": 2, "wrong_answer": 1}
