"""MBPP and MBPP+: reference solutions, answers with known verdicts, and inputs with their types back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.mbpp import MbppPlusTask, MbppTask, function_under_test, restored
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.assertions import check_limits, judge_by_check
from runner.sandbox.executor import Executor
from tests.benchmark_records import mbpp
from tests.benchmark_records.files import records

pytestmark = pytest.mark.anyio
LIMITS = ExecutionLimits(slowdown=10)
"""CPU time decides; the clock has room for a busy machine."""
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


@pytest.mark.parametrize("file", ["mbpp.jsonl", "sanitized-mbpp.json"])
async def test_reference_solutions_all_pass(benchmark_files: Path, executor: Executor, file: str) -> None:
    problems = records("mbpp", benchmark_files / file)
    done = await asyncio.gather(*(MbppTask.read(r).judge(r["code"], executor, LIMITS) for r in problems.values()))
    assert {verdict.detail for verdict in done if verdict.outcome is not Outcome.PASSED} == set()


async def test_answers_have_the_known_verdict(benchmark_files: Path, executor: Executor) -> None:
    problems = records("mbpp", benchmark_files / "mbpp.jsonl")
    answers = [(MbppTask.read(problems[name]), code, right) for name, rows in mbpp.ANSWERS.items() for code, right in rows]
    done = await asyncio.gather(*(task.judge(code, executor, LIMITS) for task, code, _ in answers))
    different = [
        (code, verdict) for (_, code, right), verdict in zip(answers, done, strict=True)
        if (verdict.outcome is Outcome.PASSED) != right
    ]  # fmt: skip
    assert different == []
    assert set(mbpp.ANSWERS) == set(problems)


async def test_answers_by_tests_that_are_a_check_function(benchmark_files: Path, executor: Executor) -> None:
    """As other projects wrap MBPP's assertions: the function is called by its name, then the check is."""
    problems = records("mbpp", benchmark_files / "mbpp.jsonl")
    jobs = []
    for name in ("MBPP/3", "MBPP/120", "MBPP/700"):
        task = MbppTask.read(problems[name])
        body = "".join(f"    {line}\n" for line in task.tests.splitlines())
        test = f"\ndef check(candidate):\n{body}check({task.entry})\n"
        jobs += [(code, test, task.entry, right) for code, right in mbpp.ANSWERS[name]]
    done = await asyncio.gather(
        *(judge_by_check(code, test, entry, executor, check_limits(LIMITS, 6)) for code, test, entry, _ in jobs)
    )
    assert [verdict.outcome is Outcome.PASSED for verdict in done] == [right for *_, right in jobs]


async def test_plus_records_accept_their_reference_and_tell_answers_apart(benchmark_files: Path, executor: Executor) -> None:
    for name, record in records("mbpp_plus", benchmark_files / "MbppPlus.jsonl.gz").items():
        task = MbppPlusTask.read(record)
        for code, right in [(record["canonical_solution"], True), *mbpp.PLUS_ANSWERS[name]]:
            verdict = await task.judge(code, executor, LIMITS)
            assert verdict.outcome is (Outcome.PASSED if right else Outcome.WRONG_ANSWER), (name, code, verdict)


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
