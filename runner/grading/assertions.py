"""Judges a program by assertions in a separate process: HumanEval and MBPP. The Plus variants use its limits and verdict.

Assertions only say whether all of them held, so an answer counts as one test.
"""

import math

from runner.contract.events import Outcome, TestResult, Usage
from runner.contract.run_spec import ExecutionLimits
from runner.grading.verdict import Verdict, exit_of, outcome_of
from runner.reporting.truncation import excerpt
from runner.sandbox.executor import Executor
from runner.sandbox.limits import Limits
from runner.sandbox.outcome import Ending, Execution

OUTPUT_BYTES = 16 << 20


def check_limits(limits: ExecutionLimits, cpu_s: float, at_most_wall_s: float = math.inf) -> Limits:
    """Returns the limits of a whole check; the wall limit is a backstop."""
    return Limits(
        cpu_s=cpu_s,
        wall_s=min(limits.wall_s(cpu_s), at_most_wall_s),
        memory_bytes=limits.memory_bytes,
        output_bytes=max(limits.output_bytes, OUTPUT_BYTES),
    )


async def judge_by_check(
    program: str, test_code: str, entry: str, executor: Executor, limits: Limits, *, context: str = ""
) -> Verdict:
    """Runs the assertions of `test_code` against `entry` of the program."""
    return check_verdict(await executor.run_check(program, test_code, entry, limits, context=context), test_code)


def check_verdict(execution: Execution, shown: str) -> Verdict:
    """Returns the verdict; `shown` is what people see as the test if it did not pass."""
    outcome = outcome_of(execution, execution.passed)
    detail = execution.detail or outcome.value
    last = execution.stderr_tail.rstrip().rsplit("\n", 1)[-1].strip()
    if outcome is Outcome.RUNTIME_ERROR and last and execution.ending is Ending.crashed:
        detail = last
    passed = outcome is Outcome.PASSED
    used = execution.usage
    usage = Usage(cpu_s=used.cpu_s, wall_s=used.wall_s, peak_bytes=used.peak_bytes)
    test = TestResult(
        index=0,
        outcome=outcome,
        usage=usage,
        input=None if passed else excerpt(shown),
        stderr=None if passed else excerpt(execution.stderr_tail[-2000:]) or None,
    )
    return Verdict(outcome, excerpt(detail), 1, int(passed), [test], usage, exit_of(execution))
