"""LiveCodeBench records, asked and judged in the real sandbox."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.sandbox.executor import Executor
from tests.service.runner.fake_orchestrator import problem
from tests.uids import own_uid_base

pytestmark = pytest.mark.anyio

STDIN: dict[str, Any] = problem("p")["record"]
CALLS: dict[str, Any] = {
    "question_content": "Reverse the list.",
    "starter_code": "class Solution:\n    def turn(self, items: List[int]) -> List[int]:\n        ",
    "public_test_cases": [{"input": "[1, 2]\n", "output": "[2, 1]", "testtype": "functional"}],
    "private_test_cases": [{"input": "[]", "output": "[]", "testtype": "functional"}],
    "metadata": {"func_name": "turn"},
}


@pytest.fixture(scope="module")
async def executor() -> AsyncIterator[Executor]:
    async with Executor.open(slots=1, uid_base=own_uid_base()) as executor:
        yield executor


@pytest.mark.parametrize("record", [STDIN, CALLS], ids=["stdin", "functional"])
def test_the_prompt_holds_the_statement_and_has_a_version(record: dict[str, Any]) -> None:
    prompt = LiveCodeBenchTask.read(record).prompt()
    assert record["question_content"] in prompt.user
    assert record["starter_code"].strip() in prompt.user
    assert prompt.version == "livecodebench-1"
    assert all(test["output"] not in prompt.user for test in record["private_test_cases"] if test["output"] != "[]")


def test_fields_may_still_be_texts() -> None:
    texts = {name: json.dumps(CALLS[name]) for name in ("public_test_cases", "private_test_cases", "metadata")}
    assert LiveCodeBenchTask.read({**CALLS, **texts}) == LiveCodeBenchTask.read(CALLS)


def test_the_function_is_found_in_the_starter_code() -> None:
    assert LiveCodeBenchTask.read({**CALLS, "metadata": {}}).entry == "turn"
    assert LiveCodeBenchTask.read(STDIN).entry is None


BROKEN: dict[str, dict[str, Any]] = {
    "no statement": {"question_content": ""},
    "no tests": {"public_test_cases": [], "private_test_cases": "[]"},
    "encoded tests": {"private_test_cases": "eJxr"},
    "tests of another kind": {"private_test_cases": [{"in": "1"}]},
    "tests that are none": {"private_test_cases": 7},
    "odd function": {"metadata": {"func_name": "a b"}},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_record_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ProblemError):
        LiveCodeBenchTask.read({**STDIN, **change})


JUDGED: dict[str, tuple[dict[str, Any], str, Outcome]] = {
    "right": (STDIN, "print(2 * int(input()))", Outcome.PASSED),
    "by iteration": (STDIN, "import sys\nfor line in sys.stdin: print(2 * int(line))", Outcome.PASSED),
    "wrong": (STDIN, "print(4)", Outcome.WRONG_ANSWER),
    "crash": (STDIN, "print(1 // 0)", Outcome.RUNTIME_ERROR),
    "no Python": (STDIN, "int main() {}", Outcome.RUNTIME_ERROR),
    "slow": (STDIN, "while True: pass", Outcome.TIME_LIMIT),
    "flood": (STDIN, "while True: print('x' * 9999)", Outcome.OUTPUT_LIMIT),
    "right by call": (CALLS, "class Solution:\n    def turn(self, items): return items[::-1]", Outcome.PASSED),
    "List without import": (CALLS, CALLS["starter_code"] + "return items[::-1]", Outcome.PASSED),
    "wrong by call": (CALLS, "class Solution:\n    def turn(self, items): return items", Outcome.WRONG_ANSWER),
    "always equal": (
        CALLS,
        "class E(list):\n    def __eq__(self, o): return True\nclass Solution:\n    def turn(self, items): return E()",
        Outcome.WRONG_ANSWER,
    ),
    "no such function": (CALLS, "x = 1", Outcome.RUNTIME_ERROR),
}


@pytest.mark.parametrize(("record", "code", "outcome"), JUDGED.values(), ids=JUDGED)
async def test_judging(executor: Executor, record: dict[str, Any], code: str, outcome: Outcome) -> None:
    limits = ExecutionLimits(cpu_s=0.5, memory_bytes=256 << 20)
    verdict = await LiveCodeBenchTask.read(record).judge(code, executor, limits)
    assert verdict.outcome is outcome, verdict.detail
    assert verdict.tests_total == 2
    assert verdict.tests_passed == (2 if outcome is Outcome.PASSED else verdict.tests_passed)


async def test_a_failed_test_shows_its_texts(executor: Executor) -> None:
    verdict = await LiveCodeBenchTask.read(STDIN).judge("print(4)", executor, ExecutionLimits())
    assert verdict.tests_passed == 1
    assert (verdict.tests[1].input, verdict.tests[1].expected, verdict.tests[1].got) == ("21\n", "42\n", "4\n")
