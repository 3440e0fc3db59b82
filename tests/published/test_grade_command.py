"""`benchyard grade` on published answers, in real containers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmark_records.files import read_json_lines
from tests.e2e.grade_command import Yard
from tests.published.conftest import Find

pytestmark = [pytest.mark.data, pytest.mark.engine, pytest.mark.slow]
MBPP_DIFFERS = {"56", "436"}
"""By MBPP's own tests; docs/grading.md says why."""
OTHER_CHECKER = {"abc303_d", "abc338_d", "abc344_b", "abc359_d", "abc301_e"}
"""docs/grading.md says of each why it differs."""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Yard:
    return Yard(tmp_path_factory.mktemp("yard"))


def by_problem(verdicts: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["problem_id"]: row for row in verdicts}


def test_codellama_on_humaneval_is_graded_as_published(yard: Yard, published: Find) -> None:
    yard.add("humaneval", published("humaneval/HumanEval.jsonl.gz"))
    rows = read_json_lines(published("graded/ldb_codellama_humaneval_seed.jsonl"))
    summary, verdicts = yard.grade("humaneval", [{"task_id": row["task_id"], "solution": row["solution"]} for row in rows])
    assert {name: row["outcome"] == "passed" for name, row in by_problem(verdicts).items()} == {
        row["task_id"]: row["is_solved"] for row in rows
    }
    assert summary["passed"] == 81


def test_codellama_on_mbpp_is_graded_as_published(yard: Yard, published: Find) -> None:
    yard.add("mbpp", published("mbpp/mbpp.jsonl"))
    rows = read_json_lines(published("graded/ldb_codellama_mbpp_seed.jsonl"))
    summary, verdicts = yard.grade("mbpp", [{"task_id": row["task_id"], "solution": row["solution"]} for row in rows])
    assert (summary["total"], summary["unattempted"]) == (500, 474)
    passed = {row["problem_id"].rpartition("/")[2]: row["outcome"] == "passed" for row in verdicts}
    solved = {row["task_id"].rpartition("/")[2]: row["is_solved"] for row in rows}
    assert {name for name, right in solved.items() if passed[name] != right} == MBPP_DIFFERS


def test_a_custom_output_file_of_livecodebench(yard: Yard, published: Find) -> None:
    # Given the programs of a model for all releases, and the dataset of the fourth
    yard.add("lcb", published("livecodebench/test4.public.jsonl"))
    answers = read_json_lines(published("livecodebench/answers_o1-mini.jsonl.gz"))
    samples = [{"question_id": row["question_id"], "code_list": row["code_list"]} for row in answers]
    # When they are graded
    summary, graded = yard.grade("lcb", samples)
    # Then programs for other problems are named, and the rest is as published in both ways, where public tests can decide
    verdicts = by_problem(graded)
    assert summary["total"] + summary["left_out"] == len(samples)
    assert "line 1" in summary["left_out_lines"][0]
    assert summary["unattempted"] == 0
    decided = {
        row["question_id"]: row
        for row in read_json_lines(published("livecodebench/verdicts.jsonl"))
        if row["file"].startswith("O1-Mini") and row["cls"] == "agree" and row["question_id"] in verdicts
    }
    assert len(decided) > 80
    for name, row in decided.items():
        if name in OTHER_CHECKER or "Time Limit" in row["official_error"]:
            continue
        verdict = verdicts[name]
        both = (verdict["outcome"] == "passed", verdict["parity_outcome"] == "passed")
        assert both == (row["official"], row["official"]), name
