"""Benchmarks as Python files that misbehave: each is contained, named in one sentence, and never a score."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from runner.benchmarks.python_file import PythonTask
from runner.benchmarks.user_program import UserCodeFailed, UserProgram
from runner.contract.events import Outcome
from runner.contract.rules.grading import AnswerRule, By, GradingRules, JudgeRule
from runner.contract.rules.python_file import PythonFile
from runner.contract.run_spec import ExecutionLimits
from runner.sandbox.executor import Executor

pytestmark = pytest.mark.anyio

LIMITS = ExecutionLimits(cpu_s=2.0, memory_bytes=256 << 20)
HOSTILE = {
    "never ends": ("while True: pass", "score took longer than its limit of 2 s"),
    "sleeps": ("import time; time.sleep(600)", "score took longer than its limit"),
    "forks": ("import os\n    while True: os.fork()", "score raised PermissionError"),
    "starts a program": ("import subprocess; subprocess.run(['id'])", "score raised"),
    "takes all memory": ("block = bytearray(1 << 34)", "score needed more memory than its limit of 256 MiB"),
    "reads other processes": ("open('/proc/1/environ').read()", "score raised PermissionError"),
    "reads the service's files": ("open('/etc/passwd').read()", "score raised PermissionError"),
    "writes a file": ("open('/tmp/left-behind', 'w').write('x')", "score raised"),
    "uses the network": ("import socket; socket.create_connection(('127.0.0.1', 80))", "score raised PermissionError"),
    "leaves": ("import os; os._exit(0)", "score gave no reply of its own"),
    "leaves politely": ("raise SystemExit", "score"),
    "prints without end": ("while True: print('x' * 100000)", "score"),
    "returns NaN": ("return float('nan')", "score must give a value from 0 to 1, not nan"),
    "returns too much": ("return 1.5", "score must give a value from 0 to 1, not 1.5"),
    "returns infinity": ("return Score(float('inf'))", "score must give a value from 0 to 1"),
    "returns nothing": ("return None", "score raised TypeError: score must return a Score, a bool or a number"),
    "returns a text for passed": ("return Score(1, passed='yes')", "True, False or None for passed"),
    "returns a huge reason": ("return Score(1, reason='x' * (1 << 25))", "score wrote or returned more than its limit"),
    "returns what is no JSON": ("return Score(1, reason={1})", "score raised TypeError"),
    "recurses": ("return score(record, answer)", "score raised RecursionError"),
    "crashes the interpreter": ("import ctypes; ctypes.string_at(0)", "score"),
}


@pytest.fixture
async def executor() -> AsyncIterator[Executor]:
    async with Executor.open(2) as executor:
        yield executor


def program(executor: Executor, body: str, function: str = "score(record, answer)", **fields: int) -> UserProgram:
    source = f"from benchyard_task import Score\n\n\ndef {function}:\n    {body}\n"
    return UserProgram(PythonFile(source=source, **fields), executor, LIMITS)


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_scorer_is_contained(executor: Executor, name: str) -> None:
    body, sentence = HOSTILE[name]
    with pytest.raises(UserCodeFailed) as failure:
        await program(executor, body).score({"id": "1"}, "x", [], "s")
    assert sentence in str(failure.value)
    assert not failure.value.ours


async def test_after_a_hostile_one_an_honest_one_is_scored(executor: Executor) -> None:
    with pytest.raises(UserCodeFailed):
        await program(executor, "import os; os._exit(1)").score({}, "x", [], "s")
    score, _ = await program(executor, "return Score(0.25, reason=answer)").score({}, "half", [], "s")
    assert (score.value, score.passed, score.reason) == (0.25, False, "half")


@pytest.mark.parametrize(("returned", "value", "passed"), [("True", 1, True), ("0", 0, False), ("0.5", 0.5, False)])
async def test_plain_results(executor: Executor, returned: str, value: float, passed: bool) -> None:
    score, _ = await program(executor, f"return {returned}").score({}, "x", [], "s")
    assert (score.value, score.passed) == (value, passed)


async def test_nothing_is_kept_between_items(executor: Executor) -> None:
    """Neither in the module nor in other modules: each call has a process of its own."""
    body = "import json; json.seen = getattr(json, 'seen', 0) + 1; seen.append(1); return len(seen) == json.seen == 1"
    own = program(executor, body, "score(record, answer, seen=[])".replace(", seen=[]", ""))
    own = UserProgram(PythonFile(source="seen = []\n" + own.file.source), executor, LIMITS)
    for _ in range(3):
        assert (await own.score({}, "x", [], "s"))[0].passed


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return 1", "prompt must return a text or a list"),
        ("return []", "prompt must return a text or a list"),
        ("return ''", "must be the user's, and not empty"),
        ("return [{'role': 'assistant', 'content': 'x'}]", "must be the user's"),
        ("return [{'role': 'root', 'content': 'x'}]", "prompt must return a text or a list"),
        ("return [{'role': 'user', 'content': 'x', 'tool': 1}]", "prompt must return a text or a list"),
        ("return [{'role': r, 'content': 'x'} for r in ('user', 'system', 'user')]", "only the first message"),
        ("return 'x' * 3_000_000", "longer than 2000000 characters"),
        ("return record['nothing']", "prompt raised KeyError: 'nothing'"),
    ],
)
async def test_a_prompt_is_checked(executor: Executor, body: str, sentence: str) -> None:
    with pytest.raises(UserCodeFailed) as failure:
        await program(executor, body, "prompt(record)").prompt({}, "s")
    assert sentence in str(failure.value)


async def test_chance_is_the_same_each_time(executor: Executor) -> None:
    own = program(executor, "import random; return str(random.random()) + str({'a', 'b', 'c'})", "prompt(record)")
    assert await own.prompt({}, "b/1/0/0") == await own.prompt({}, "b/1/0/0") != await own.prompt({}, "b/2/0/0")


async def test_records_are_bounded(executor: Executor) -> None:
    own = program(executor, "return ({'id': n} for n in range(3))", "records()")
    assert await own.records() == [{"id": 0}, {"id": 1}, {"id": 2}]
    for body, sentence in (("return ({} for _ in iter(int, 1))", "yields more than 10000"), ("return [1]", "dictionaries")):
        with pytest.raises(UserCodeFailed, match=sentence):
            await program(executor, body, "records()").records()


async def test_a_failure_is_an_excluded_outcome_and_an_answer_that_is_code_is_only_text(executor: Executor) -> None:
    rules = GradingRules(
        answer=AnswerRule(), judge=JudgeRule(by=By.PYTHON), prompt_version="v", program=PythonFile(source="x = 1")
    )
    task = PythonTask.read({"record": {"id": 1}}, rules=rules)
    verdict = await task.judge("x", executor, LIMITS)
    assert (verdict.outcome, verdict.score) == (Outcome.INFRA_ERROR, None)
    assert "score raised AttributeError" in verdict.detail
    echo = PythonFile(source="def score(record, answer):\n    return answer == 'x = 1; raise SystemExit'\n")
    task = PythonTask.read({"record": {}}, rules=rules.model_copy(update={"program": echo}))
    assert (await task.judge("x = 1; raise SystemExit", executor, LIMITS)).outcome is Outcome.PASSED
