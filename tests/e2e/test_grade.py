"""`benchyard grade` as people use it: a process, real data, a real container, no service, and nothing left behind."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
MBPP_DIFFERS = {"56", "436"}
"""By MBPP's own tests; docs/grading.md says why."""
OTHER_CHECKER = {"abc303_d", "abc338_d", "abc344_b", "abc359_d", "abc301_e"}
"""docs/grading.md says of each why it differs."""


def ours() -> set[str]:
    """Containers and networks of services that lived for one command."""
    found = set()
    for words in (
        ("ps", "--all", "--format", "{{.Names}} {{.Labels}}"),
        ("network", "ls", "--format", "{{.Name}} {{.Labels}}"),
    ):
        answer = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=60, check=True)
        found |= {line for line in answer.stdout.splitlines() if "benchyard.instance=local-" in line}
    return found


class Yard:
    """A data directory of its own, with datasets from real files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("BENCHYARD_", "DATABASE_URL"))}
        self.env = {**kept, "BENCHYARD_DATA": str(folder / "data"), "BENCHYARD_PORT": "9"}

    def __call__(self, *words: str) -> Any:
        command = [sys.executable, "-m", "orchestrator.cli", *words, "--json"]
        ended = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=900, check=False)
        assert ended.returncode == 0, f"benchyard {' '.join(words)}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        return json.loads(ended.stdout)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "orchestrator.cli", *words]
        return subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def add(self, name: str, *path: str) -> None:
        self("datasets", "add", name, "--from", str(SHARED.joinpath(*path)))

    def grade(self, benchmark: str, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """The summary, and the verdicts by problem."""
        samples, out = self.folder / f"{benchmark}.jsonl", self.folder / f"{benchmark}-verdicts.jsonl"
        samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
        summary = self("grade", "--benchmark", benchmark, "--samples", str(samples), "--out", str(out), "--engine", "docker")
        verdicts = {row["problem_id"]: row for row in map(json.loads, out.read_text().splitlines())}
        return summary, verdicts


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    assert SHARED.is_dir(), f"these tests need the real data in {SHARED}"
    it = Yard(tmp_path_factory.mktemp("yard"))
    it.add("humaneval", "humaneval", "HumanEval.jsonl.gz")
    yield it
    assert not ours()
    assert [path.name for path in (it.folder / "data").iterdir()] == ["packs"]


def rows_of(*path: str) -> list[dict[str, Any]]:
    data = SHARED.joinpath(*path).read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path[-1].endswith(".gz") else data).splitlines()]


def test_canonical_solutions_of_humaneval_all_pass(yard: Yard) -> None:
    problems = rows_of("humaneval", "HumanEval.jsonl.gz")
    samples = [{"task_id": row["task_id"], "completion": row["canonical_solution"]} for row in problems]
    summary, verdicts = yard.grade("humaneval", samples)
    assert (summary["total"], summary["passed"], summary["unattempted"], summary["left_out"]) == (164, 164, 0, 0)
    assert {row["outcome"] for row in verdicts.values()} == {"passed"}


def test_codellama_on_humaneval_is_graded_as_published(yard: Yard) -> None:
    published = rows_of("graded", "ldb_codellama_humaneval_seed.jsonl")
    samples = [{"task_id": row["task_id"], "solution": row["solution"]} for row in published]
    summary, verdicts = yard.grade("humaneval", samples)
    assert {name: row["outcome"] == "passed" for name, row in verdicts.items()} == {
        row["task_id"]: row["is_solved"] for row in published
    }
    assert summary["passed"] == 81


def test_codellama_on_mbpp_is_graded_as_published(yard: Yard) -> None:
    yard.add("mbpp", "mbpp", "mbpp.jsonl")
    published = {row["task_id"].rpartition("/")[2]: row for row in rows_of("graded", "ldb_codellama_mbpp_seed.jsonl")}
    samples = [{"task_id": row["task_id"], "solution": row["solution"]} for row in published.values()]
    summary, verdicts = yard.grade("mbpp", samples)
    assert (summary["total"], summary["unattempted"]) == (500, 474)
    passed = {name.rpartition("/")[2]: row["outcome"] == "passed" for name, row in verdicts.items()}
    assert {name for name, row in published.items() if passed[name] != row["is_solved"]} == MBPP_DIFFERS


def test_a_custom_output_file_of_livecodebench(yard: Yard) -> None:
    # Given the programs of a model for all releases, and the dataset of the fourth
    yard.add("lcb", "livecodebench", "test4.public.jsonl")
    answers = rows_of("livecodebench", "answers_o1-mini.jsonl.gz")
    samples = [{"question_id": row["question_id"], "code_list": row["code_list"]} for row in answers]
    # When they are graded
    summary, verdicts = yard.grade("lcb", samples)
    # Then programs for other problems are named, and the rest is as published in both ways, where public tests can decide
    assert summary["total"] + summary["left_out"] == len(samples)
    assert "line 1" in summary["left_out_lines"][0]
    assert summary["unattempted"] == 0
    decided = {
        row["question_id"]: row
        for row in rows_of("livecodebench", "verdicts.jsonl")
        if row["file"].startswith("O1-Mini") and row["cls"] == "agree" and row["question_id"] in verdicts
    }
    assert len(decided) > 80
    for name, row in decided.items():
        if name in OTHER_CHECKER or "Time Limit" in row["official_error"]:
            continue
        verdict = verdicts[name]
        both = (verdict["outcome"] == "passed", verdict["parity_outcome"] == "passed")
        assert both == (row["official"], row["official"]), name


def endless(yard: Yard) -> subprocess.Popen[str]:
    """A command that would grade for minutes, once its container is there."""
    samples = yard.folder / "endless.jsonl"
    rows = rows_of("humaneval", "HumanEval.jsonl.gz")
    text = "    while True:\n        pass\n"
    samples.write_text("".join(json.dumps({"task_id": row["task_id"], "completion": text}) + "\n" for row in rows))
    command = yard.start("grade", "--benchmark", "humaneval", "--samples", str(samples), "--engine", "docker")
    deadline = time.monotonic() + 60
    while not any("benchyard.run=" in line for line in ours()):
        assert time.monotonic() < deadline, command.poll()
        time.sleep(0.2)
    return command


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["terminated", "interrupted"])
def test_a_command_that_is_stopped_leaves_nothing(yard: Yard, number: signal.Signals) -> None:
    command = endless(yard)
    command.send_signal(number)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 130
    assert "stopped" in err
    assert not ours()


def test_what_a_killed_command_left_is_cleared_by_the_next(yard: Yard) -> None:
    # Given a command that was killed while its container ran
    command = endless(yard)
    command.kill()
    command.communicate(timeout=60)
    assert ours()
    (left,) = (yard.folder / "data").glob("local-*")
    os.utime(left, (0, 0))
    # When another one is started, which has nothing to grade
    nothing = yard.folder / "nothing.jsonl"
    nothing.write_text("{}\n")
    again = yard.start("grade", "--benchmark", "humaneval", "--samples", str(nothing), "--engine", "docker")
    _, err = again.communicate(timeout=120)
    # Then it says so, and nothing of both is left
    assert (again.returncode, "line 1" in err) == (1, True)
    assert not ours()
    assert not left.exists()
