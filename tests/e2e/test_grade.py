"""`benchyard grade` as people use it: a process, a real container, no service, and nothing left behind."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmark_records import humaneval, livecodebench, mbpp
from tests.benchmark_records.files import read_json_lines
from tests.e2e.grade_command import Yard

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory, benchmark_files: Path) -> Iterator[Yard]:
    it = Yard(tmp_path_factory.mktemp("yard"))
    it.add("humaneval", benchmark_files / "HumanEval.jsonl.gz")
    yield it
    assert it.names
    assert not it.left()
    assert [path.name for path in (it.folder / "data").iterdir()] == ["packs"]


def published_problems() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(humaneval.published_file()).splitlines()]


def test_canonical_solutions_of_humaneval_all_pass(yard: Yard) -> None:
    samples = [{"task_id": row["task_id"], "completion": row["canonical_solution"]} for row in published_problems()]
    summary, verdicts = yard.grade("humaneval", samples)
    assert (summary["total"], summary["passed"], summary["unattempted"], summary["left_out"]) == (164, 164, 0, 0)
    assert {row["outcome"] for row in verdicts} == {"passed"}


def test_right_and_wrong_answers_are_told_apart(yard: Yard) -> None:
    samples = [{"task_id": name, "solution": code} for name, (code, _) in humaneval.ANSWERS.items()]
    summary, verdicts = yard.grade("humaneval", samples)
    assert {row["problem_id"]: row["outcome"] == "passed" for row in verdicts} == {
        name: right for name, (_, right) in humaneval.ANSWERS.items()
    }
    assert summary["passed"] == sum(right for _, right in humaneval.ANSWERS.values())
    assert (summary["total"], summary["unattempted"]) == (len(samples), 164 - len(samples))


def test_several_answers_to_tasks_of_mbpp(yard: Yard, benchmark_files: Path) -> None:
    yard.add("mbpp", benchmark_files / "mbpp.jsonl")
    wanted = [(name, code, right) for name, rows in mbpp.ANSWERS.items() for code, right in rows]
    samples = [{"task_id": name.replace("MBPP", "Mbpp"), "solution": code} for name, code, _ in wanted]
    summary, verdicts = yard.grade("mbpp", samples)
    assert (summary["total"], summary["unattempted"]) == (len(wanted), 0)
    by_sample = {(row["problem_id"], row["sample_index"]): row["outcome"] == "passed" for row in verdicts}
    assert by_sample == {
        (name, index): right for name, rows in mbpp.ANSWERS.items() for index, (_, right) in enumerate(rows)
    }


def test_a_custom_output_file_of_livecodebench(yard: Yard, benchmark_files: Path) -> None:
    # Given an output file with programs for several problems, one of which the dataset does not have
    yard.add("lcb", benchmark_files / "livecodebench.jsonl")
    samples = [
        {"question_id": row["question_id"], "code_list": row["code_list"]}
        for row in read_json_lines(benchmark_files / "livecodebench-answers.jsonl.gz")
    ]
    # When they are graded
    summary, verdicts = yard.grade("lcb", samples)
    # Then the line of the other problem is named, and every program has both of its verdicts
    assert (summary["total"], summary["left_out"], summary["unattempted"]) == (len(livecodebench.ANSWERS), 1, 0)
    assert "line 1" in summary["left_out_lines"][0]
    found: dict[str, list[tuple[str, str]]] = {}
    for row in sorted(verdicts, key=lambda row: row["sample_index"]):
        found.setdefault(row["problem_id"], []).append((row["outcome"], row["parity_outcome"]))
    wanted: dict[str, list[tuple[str, str]]] = {}
    for answer in livecodebench.ANSWERS:
        wanted.setdefault(answer.problem, []).append((answer.strict, answer.parity))
    assert found == wanted


def endless(yard: Yard) -> subprocess.Popen[str]:
    """A command that would grade for minutes, once its container is there."""
    samples = yard.folder / "endless.jsonl"
    rows = published_problems()
    text = "    while True:\n        pass\n"
    samples.write_text("".join(json.dumps({"task_id": row["task_id"], "completion": text}) + "\n" for row in rows))
    command = yard.start("grade", "--benchmark", "humaneval", "--samples", str(samples), "--engine", "docker")
    deadline = time.monotonic() + 600
    while not any("benchyard.run=" in line for line in yard.left()):
        assert time.monotonic() < deadline, command.poll()
        time.sleep(0.2)
    return command


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["terminated", "interrupted"])
def test_a_command_that_is_stopped_leaves_nothing(yard: Yard, number: signal.Signals) -> None:
    command = endless(yard)
    command.send_signal(number)
    _, err = command.communicate(timeout=600)
    assert command.returncode == 130
    assert "stopped" in err
    assert not yard.left()


def test_what_a_killed_command_left_is_cleared_by_the_next(yard: Yard) -> None:
    # Given a command that was killed while its container ran
    command = endless(yard)
    command.kill()
    command.communicate(timeout=600)
    assert yard.left()
    (left,) = (yard.folder / "data").glob("local-*")
    os.utime(left, (0, 0))
    # When another one is started, which has nothing to grade
    nothing = yard.folder / "nothing.jsonl"
    nothing.write_text("{}\n")
    again = yard.start("grade", "--benchmark", "humaneval", "--samples", str(nothing), "--engine", "docker")
    _, err = again.communicate(timeout=600)
    # Then it says so, and nothing of both is left
    assert (again.returncode, "line 1" in err) == (1, True)
    assert not yard.left()
    assert not left.exists()
