"""HumanEval, HumanEval+ and MBPP: reference solutions pass, real graded answers have the published verdict."""

import asyncio
from typing import Any

import pytest

from runner.benchmarks.adapter import Task
from runner.benchmarks.humaneval import HumanEvalPlusTask, HumanEvalTask
from runner.benchmarks.mbpp import MbppTask
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.grading.assertions import check_limits, judge_by_check
from runner.grading.verdict import Verdict
from runner.sandbox.executor import Executor
from tests.benchmark_records.files import read_json_lines, records
from tests.published.conftest import Find

pytestmark = [pytest.mark.data, pytest.mark.anyio]
LIMITS = ExecutionLimits(slowdown=10)
"""CPU time decides; the clock has room for a busy machine."""


async def judge_all(jobs: dict[str, tuple[Task, str]], executor: Executor) -> dict[str, Verdict]:
    done = await asyncio.gather(*(task.judge(code, executor, LIMITS) for task, code in jobs.values()))
    return dict(zip(jobs, done, strict=True))


def failed(verdicts: dict[str, Verdict]) -> dict[str, str]:
    return {name: verdict.detail for name, verdict in verdicts.items() if verdict.outcome is not Outcome.PASSED}


async def test_graded_answers_of_humaneval_have_the_published_verdict(published: Find, executor: Executor) -> None:
    problems = records("humaneval", published("humaneval/HumanEval.jsonl.gz"))
    rows = read_json_lines(published("graded/ldb_codellama_humaneval_seed.jsonl"))
    jobs = {row["task_id"]: (HumanEvalTask.read(problems[row["task_id"]]), row["solution"]) for row in rows}
    found = await judge_all(jobs, executor)
    assert {name: verdict.outcome is Outcome.PASSED for name, verdict in found.items()} == {
        row["task_id"]: row["is_solved"] for row in rows
    }


async def test_the_examples_of_humaneval_give_one_half(published: Find, executor: Executor) -> None:
    (record,) = records("humaneval", published("humaneval/example_problem.jsonl")).values()
    rows = read_json_lines(published("humaneval/example_samples.jsonl"))
    task = HumanEvalTask.read(record)
    found = await asyncio.gather(*(task.judge(row["completion"], executor, LIMITS) for row in rows))
    assert [verdict.outcome is Outcome.PASSED for verdict in found] == [False, False, False, True, True, True]
    assert found[1].outcome is Outcome.TIME_LIMIT


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.exhaustive)])
async def test_reference_solutions_of_humaneval_plus_pass(published: Find, executor: Executor, every: int) -> None:
    problems = records("humaneval_plus", published("humaneval_plus/HumanEvalPlus.jsonl.gz"))
    chosen = list(problems.items())[::every]
    jobs = {name: (HumanEvalPlusTask.read(r), r["prompt"] + r["canonical_solution"]) for name, r in chosen}
    assert failed(await judge_all(jobs, executor)) == {}


@pytest.mark.parametrize(("file", "count"), [("mbpp/sanitized-mbpp.json", 427), ("mbpp/mbpp.jsonl", 974)])
async def test_reference_solutions_of_mbpp_pass(published: Find, executor: Executor, file: str, count: int) -> None:
    problems = records("mbpp", published(file))
    found = await judge_all({name: (MbppTask.read(r), r["code"]) for name, r in problems.items()}, executor)
    assert (failed(found), len(found)) == ({}, count)


@pytest.fixture(scope="module")
def graded(published: Find) -> list[dict[str, Any]]:
    return read_json_lines(published("graded/ldb_codellama_mbpp_seed.jsonl"))


async def test_graded_answers_of_mbpp_by_the_tests_they_were_graded_with(
    graded: list[dict[str, Any]], executor: Executor
) -> None:
    done = await asyncio.gather(
        *(judge_by_check(r["solution"], r["test"], r["entry_point"], executor, check_limits(LIMITS, 6)) for r in graded)
    )
    found = {row["task_id"]: verdict.outcome is Outcome.PASSED for row, verdict in zip(graded, done, strict=True)}
    assert {row["task_id"] for row in graded if found[row["task_id"]] != row["is_solved"]} == set()


async def test_graded_answers_of_mbpp_by_its_own_tests(
    graded: list[dict[str, Any]], published: Find, executor: Executor
) -> None:
    problems = records("mbpp", published("mbpp/mbpp.jsonl"))
    jobs = {row["task_id"]: (MbppTask.read(problems[row["task_id"]]), row["solution"]) for row in graded}
    found = await judge_all(jobs, executor)
    differ = {row["task_id"] for row in graded if (found[row["task_id"]].outcome is Outcome.PASSED) != row["is_solved"]}
    assert differ == {"MBPP/56", "MBPP/436"}, "docs/grading.md explains these two, and no other"
