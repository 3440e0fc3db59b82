"""Judges a mathematical answer by symbolic equality, computed in the sandbox."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from runner.contract.events import Outcome, Usage
from runner.contract.run_spec import ExecutionLimits
from runner.grading.assertions import check_limits
from runner.grading.verdict import Verdict
from runner.reporting.truncation import excerpt
from runner.sandbox import inside
from runner.sandbox.executor import Executor
from runner.sandbox.outcome import Ending

MOST_CHARS = 2000
"""A longer answer is no answer."""
CPU_S = 10.0
SHOWN_CHARS = 100
NOT_INSTALLED = "mathematical answers cannot be compared: math-verify is not installed beside this runner"


async def judge_mathematics(
    answer: str, targets: Sequence[str], executor: Executor, limits: ExecutionLimits, cpu_s: float | None = None
) -> Verdict:
    """The answer is right if it equals one of the targets. One that cannot be compared within the limits is wrong."""
    shown, wanted = f"{answer:.{SHOWN_CHARS}}", " or ".join(f"{target:.{SHOWN_CHARS}}" for target in targets)
    if len(answer) > MOST_CHARS:
        return Verdict(Outcome.WRONG_ANSWER, f"an answer of {len(answer)} characters is too long to be compared", 1, 0)
    (execution,) = await executor.run_calls(
        _program(),
        "equals_any",
        [[answer, list(targets)]],
        check_limits(limits, cpu_s or CPU_S),
        lambda *_: True,
        prelude=False,
    )
    outcome, detail = Outcome.WRONG_ANSWER, f"{shown} was answered, {wanted} is right"
    if execution.ending is Ending.sandbox_failed:
        outcome, detail = Outcome.INFRA_ERROR, execution.detail
    elif execution.ending is not Ending.finished:
        detail = f"{shown} was answered, which could not be compared with {wanted}: {execution.detail}"
    elif execution.value is None:
        outcome, detail = Outcome.INFRA_ERROR, NOT_INSTALLED
    elif execution.value is True:
        outcome, detail = Outcome.PASSED, f"{shown} is right"
    used = execution.usage
    usage = Usage(cpu_s=used.cpu_s, wall_s=used.wall_s, peak_bytes=used.peak_bytes)
    return Verdict(outcome, excerpt(detail), 1, int(outcome is Outcome.PASSED), usage=usage)


@cache
def _program() -> str:
    return (Path(inside.__file__).parent / "mathematics.py").read_text(encoding="utf-8")
