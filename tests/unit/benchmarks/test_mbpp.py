"""MBPP and MBPP+: reference solutions, real graded answers, and inputs with their types back."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.humaneval_check import check_limits, judge_by_check
from runner.benchmarks.mbpp import MbppTask, function_under_test
from runner.benchmarks.mbpp_plus import MbppPlusTask, restored
from runner.contract import ExecutionLimits, Outcome
from runner.errors import ProblemError
from runner.sandbox.executor import Executor

from .conftest import records

pytestmark = pytest.mark.anyio
LIMITS = ExecutionLimits()
RECORD: dict[str, Any] = {
    "task_id": "MBPP/900",
    "text": "Write a function to add one.",
    "code": "def add_one(x):\n    return x + 1",
    "test_list": ["assert set([add_one(1)]) == {2}", "assert add_one(2) == 3"],
}


def test_the_prompt_shows_the_tests() -> None:
    prompt = MbppTask.read(RECORD).prompt()
    assert "assert add_one(2) == 3" in prompt.user
    assert prompt.version == "mbpp-1"


@pytest.mark.parametrize(
    ("tests", "code", "name"),
    [
        ("assert set(f(1)) == {1}", "def f(x): ...", "f"),
        ("assert check(70) == False", "def rev(n): ...\ndef check(n): ...", "check"),
        ("assert f(g(1)) == 1", "", "f"),
        ("assert sum(1, 2) == 3", "def sum(a, b): ...", "sum"),
    ],
)
def test_the_function_under_test(tests: str, code: str, name: str) -> None:
    assert function_under_test(tests, code) == name


@pytest.mark.parametrize(
    "change", [{"test_list": []}, {"test_list": ["assert"]}, {"text": ""}, {"test_list": ["assert 1"]}], ids=str
)
def test_records_that_cannot_be_understood(change: dict[str, Any]) -> None:
    with pytest.raises(ProblemError):
        MbppTask.read({**RECORD, **change})


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("def add_one(x):\n    return x + 1", Outcome.PASSED),
        ("def add_one(x):\n    return x", Outcome.WRONG_ANSWER),
        ("def add_one(x):\n    raise ValueError", Outcome.RUNTIME_ERROR),
        ("def other(x):\n    return x + 1", Outcome.RUNTIME_ERROR),
    ],
)
async def test_verdicts(code: str, outcome: Outcome, executor: Executor) -> None:
    assert (await MbppTask.read(RECORD).judge(code, executor, LIMITS)).outcome is outcome


async def outcomes(problems: dict[str, dict[str, Any]], executor: Executor) -> dict[str, str]:
    """Of the reference solutions that do not pass."""
    done = await asyncio.gather(*(MbppTask.read(r).judge(r["code"], executor, LIMITS) for r in problems.values()))
    return {
        name: verdict.detail for name, verdict in zip(problems, done, strict=True) if verdict.outcome is not Outcome.PASSED
    }


@pytest.mark.slow
async def test_sanitized_reference_solutions_all_pass(shared: Path, executor: Executor) -> None:
    problems = records("mbpp", shared / "mbpp" / "sanitized-mbpp.json")
    assert (await outcomes(problems, executor), len(problems)) == ({}, 427)


@pytest.mark.slow
async def test_reference_solutions_all_pass(shared: Path, executor: Executor) -> None:
    problems = records("mbpp", shared / "mbpp" / "mbpp.jsonl")
    assert (await outcomes(problems, executor), len(problems)) == ({}, 974)


@pytest.fixture(scope="module")
def graded(shared: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shared / "graded" / "ldb_codellama_mbpp_seed.jsonl").read_bytes().splitlines()]


async def test_real_graded_answers_by_the_tests_they_were_graded_with(
    graded: list[dict[str, Any]], executor: Executor
) -> None:
    done = await asyncio.gather(
        *(judge_by_check(r["solution"], r["test"], r["entry_point"], executor, check_limits(LIMITS, 6)) for r in graded)
    )
    found = {row["task_id"]: verdict.outcome is Outcome.PASSED for row, verdict in zip(graded, done, strict=True)}
    assert {name for name, right in found.items() if right != {r["task_id"]: r["is_solved"] for r in graded}[name]} == set()


async def test_real_graded_answers_by_the_benchmarks_own_tests(
    graded: list[dict[str, Any]], shared: Path, executor: Executor
) -> None:
    problems = records("mbpp", shared / "mbpp" / "mbpp.jsonl")
    done = await asyncio.gather(
        *(MbppTask.read(problems[row["task_id"]]).judge(row["solution"], executor, LIMITS) for row in graded)
    )
    differ = {
        row["task_id"]
        for row, verdict in zip(graded, done, strict=True)
        if (verdict.outcome is Outcome.PASSED) != row["is_solved"]
    }
    assert differ == {"MBPP/56", "MBPP/436"}, "docs/grading.md explains these two, and no other"


RESTORED = [
    (2, [[1], [2]], [(1,), (2,)]),
    (63, [[[1, 2]]], [[(1, 2)]]),
    (75, [[[1, 2]], 3], [[(1, 2)], 3]),
    (106, [[1], [2]], [[1], (2,)]),
    (115, [[[1, 1], []]], [[{1}, {}]]),
    (124, ["1", "2j"], [1.0, 2j]),
    (252, ["1+2j"], [1 + 2j]),
    (259, [[[1], [2]]], [((1,), (2,))]),
    (278, [[1, [2]]], [(1, (2,))]),
    (307, [[1], 2, 3], [(1,), 2, 3]),
    (580, [[1, [2, [3]]]], [(1, (2, (3,)))]),
    (722, [{"a": [1]}, 2], [{"a": (1,)}, 2]),
    (3, [5], [5]),
]  # fmt: skip


@pytest.mark.parametrize(("number", "given", "wanted"), RESTORED, ids=[str(row[0]) for row in RESTORED])
def test_inputs_get_their_types_back(number: int, given: list[Any], wanted: list[Any]) -> None:
    assert restored(number, given) == wanted
    assert repr(restored(number, given)) == repr(wanted)


PLUS: dict[str, Any] = {
    "task_id": "MBPP/63",
    "prompt": '"""\nWrite a function to find the largest difference within pairs.\n"""\n',
    "entry_point": "max_difference",
    "canonical_solution": "def max_difference(pairs):\n    return max(abs(a - b) for a, b in pairs)\n",
    "base_input": [[[[3, 5], [1, 7]]]],
    "plus_input": [[[[1, 1]]], [[[4, -4], [2, 9], [0, 0]]]],
    "atol": 0,
}


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("def max_difference(p):\n    assert type(p[0]) is tuple\n    return max(abs(a - b) for a, b in p)", Outcome.PASSED),
        ("def max_difference(p):\n    return max(a - b for a, b in p)", Outcome.WRONG_ANSWER),
        ("def max_difference(p):\n    p.append((0, 99))\n    return max(abs(a - b) for a, b in p[:-1])", Outcome.PASSED),
    ],
    ids=["right", "wrong", "changes its input"],
)
async def test_plus_verdicts(code: str, outcome: Outcome, executor: Executor) -> None:
    task = MbppPlusTask.read(PLUS)
    assert "`max_difference`" in task.prompt().user
    verdict = await task.judge(code, executor, LIMITS)
    assert verdict.outcome is outcome, verdict


@pytest.mark.parametrize(("body", "outcome"), [("n % 2 == 0", Outcome.PASSED), ("None", Outcome.WRONG_ANSWER)])
async def test_a_function_that_is_called_like_the_judges_own(body: str, outcome: Outcome, executor: Executor) -> None:
    """As MBPP/56 is."""
    solution = "def check(n):\n    return n % 2 == 0\n"
    record = {**PLUS, "task_id": "MBPP/56", "entry_point": "check", "canonical_solution": solution, "base_input": [[2], [3]]}
    task = MbppPlusTask.read({**record, "plus_input": []})
    assert (await task.judge(f"def check(n):\n    return {body}\n", executor, LIMITS)).outcome is outcome
