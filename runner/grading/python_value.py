"""Judges an answer by its value as a Python expression. It is evaluated in the sandbox, apart from the expected value."""

import re
from dataclasses import replace

from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.grading.assertions import check_limits, judge_by_check
from runner.grading.verdict import Verdict
from runner.reporting.truncation import excerpt
from runner.sandbox.executor import Executor

MOST_CHARS = 100_000
CPU_S = 3.0
SHOWN_CHARS = 100
FENCE = re.compile(r"```\w*\n|```")


async def judge_value(
    answer: str, target: str, executor: Executor, limits: ExecutionLimits, cpu_s: float | None = None
) -> Verdict:
    """An answer that is no expression, or whose value cannot be computed within the limits, is wrong."""
    shown, wanted = f"{answer:.{SHOWN_CHARS}}", f"{target:.{SHOWN_CHARS}}"
    if len(answer) > MOST_CHARS:
        return Verdict(Outcome.WRONG_ANSWER, f"an answer of {len(answer)} characters is too long to be evaluated", 1, 0)
    program = f"def answered():\n    return (\n{FENCE.sub('', answer).strip()}\n    )\n"
    test = f"def check(candidate):\n    assert candidate() == (\n{target}\n    )\n"
    verdict = await judge_by_check(program, test, "answered", executor, check_limits(limits, cpu_s or CPU_S))
    match verdict.outcome:
        case Outcome.PASSED | Outcome.INFRA_ERROR:
            return verdict
        case Outcome.WRONG_ANSWER:
            detail = f"{shown} was answered, {wanted} is right"
        case _:
            detail = f"{shown} was answered, which has no value: {verdict.detail}"
    return replace(verdict, outcome=Outcome.WRONG_ANSWER, detail=excerpt(detail))
