"""Answers as Python values: equal ones, different ones, and what is no value at all."""

from __future__ import annotations

import pytest

from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.grading.python_value import judge_value
from runner.sandbox.executor import Executor

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("answer", "target", "outcome"),
    [
        ("[1, 2]", "[1,2]", Outcome.PASSED),
        ("```python\n{'a': 1}\n```", '{"a": 1}', Outcome.PASSED),
        ("'ab'", '"ab"', Outcome.PASSED),
        ("3.0", "3", Outcome.PASSED),
        ("2 + 1", "3", Outcome.PASSED),
        ("True", "True", Outcome.PASSED),
        ("[2, 1]", "[1, 2]", Outcome.WRONG_ANSWER),
        ("ab", "'ab'", Outcome.WRONG_ANSWER),
        ("1,", "1", Outcome.WRONG_ANSWER),
        ("", "1", Outcome.WRONG_ANSWER),
        ("1 +", "1", Outcome.WRONG_ANSWER),
        ("9 ** 9 ** 9", "1", Outcome.WRONG_ANSWER),
        ("1)\nimport os\nos._exit(0)\nx = (1", "2", Outcome.WRONG_ANSWER),
        ("type('Equal', (), {'__eq__': lambda *_: True})()", "1", Outcome.WRONG_ANSWER),
        ("1" * 200_000, "1", Outcome.WRONG_ANSWER),
    ],
)
async def test_values(executor: Executor, answer: str, target: str, outcome: Outcome) -> None:
    verdict = await judge_value(answer, target, executor, ExecutionLimits(), cpu_s=1.0)
    assert verdict.outcome is outcome, verdict.detail
