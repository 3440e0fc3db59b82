"""Benchmarks that a file describes, judged in the runner: texts by rules, programs in the sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from runner.benchmarks.adapter import adapter_for
from runner.contract.events import Outcome
from runner.contract.rules.grading import DEFINED, AnswerRule, By, Find, GradingRules, JudgeRule
from runner.contract.run_spec import BenchmarkSpec, ExecutionLimits
from runner.errors import ProblemError
from runner.sandbox.executor import Executor
from tests.uids import own_uid_base

pytestmark = pytest.mark.anyio


def task_of(by: By, find: Find, record: dict[str, Any]) -> Any:
    rules = GradingRules(answer=AnswerRule(find=find), judge=JudgeRule(by=by), prompt_version="mine-1")
    spec = BenchmarkSpec(name="mine", adapter=DEFINED, pack_digest="sha256:0", problem_ids=["a"], rules=rules)
    adapter = adapter_for(BenchmarkSpec.model_validate_json(spec.model_dump_json()))
    assert adapter is not None
    return adapter({"prompt": "Do it.", **record})


async def outcome(task: Any, text: str) -> Outcome:
    found = task.extract(text)
    assert found.code is not None
    async with Executor.open(1, own_uid_base()) as executor:
        verdict = await task.judge(found.code, executor, ExecutionLimits(cpu_s=2.0))
    result: Outcome = verdict.outcome
    return result


async def test_texts() -> None:
    task = task_of(By.NUMBER, Find.NUMBER, {"target": "18", "system": "Be brief."})
    assert (task.prompt().system, task.prompt().user, task.prompt().version) == ("Be brief.", "Do it.", "mine-1")
    assert await outcome(task, "so it is #### 18.0") is Outcome.PASSED
    assert await outcome(task, "so it is #### 19") is Outcome.WRONG_ANSWER


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("print(int(input()) * 2)", Outcome.PASSED),
        ("print(int(input()) + 2)", Outcome.WRONG_ANSWER),
        ("while True: pass", Outcome.TIME_LIMIT),
        ("1/0", Outcome.RUNTIME_ERROR),
    ],
)
async def test_programs_by_their_output(program: str, expected: Outcome) -> None:
    tests = [{"input": "2", "output": "4"}, {"input": "5", "output": "10"}]
    assert await outcome(task_of(By.STDIN, Find.CODE, {"target": tests}), f"```python\n{program}\n```") is expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("def double(x):\n    return 2 * x", Outcome.PASSED),
        ("def double(x):\n    return x", Outcome.WRONG_ANSWER),
        ("import sys\ndef double(x):\n    sys.exit(0)", Outcome.RUNTIME_ERROR),
    ],
)
async def test_programs_by_assertions(program: str, expected: Outcome) -> None:
    record = {"target": ["assert double(2) == 4", "assert double(0) == 0"]}
    assert await outcome(task_of(By.ASSERTIONS, Find.CODE, record), f"```python\n{program}\n```") is expected


async def test_code_that_the_record_gives_stands_before_the_program() -> None:
    record = {"target": "assert double(2) == 4", "context": "factor = 2"}
    answer = "```python\ndef double(x):\n    return factor * x\n```"
    assert await outcome(task_of(By.ASSERTIONS, Find.CODE, record), answer) is Outcome.PASSED


def test_a_record_without_a_target_is_a_problem_of_the_data() -> None:
    with pytest.raises(ProblemError, match="target"):
        task_of(By.EXACT, Find.TEXT, {})
