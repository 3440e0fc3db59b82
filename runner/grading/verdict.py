"""Turns what a program did and what was expected into an outcome. Pure.

Outputs are compared as in LiveCodeBench: the whole is stripped, then each line; lines that differ as text are equal if
their tokens are equal as decimal numbers. There is no tolerance, and case matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from runner.contract.events import Outcome, TestResult, Usage
from runner.reporting.truncation import excerpt
from runner.sandbox.outcome import Ending, Execution

OUTCOMES = {
    Ending.time_limit: Outcome.TIME_LIMIT,
    Ending.memory_limit: Outcome.MEMORY_LIMIT,
    Ending.output_limit: Outcome.OUTPUT_LIMIT,
    Ending.crashed: Outcome.RUNTIME_ERROR,
    Ending.sandbox_failed: Outcome.INFRA_ERROR,
}


@dataclass(frozen=True)
class Verdict:
    """How one answer was judged."""

    outcome: Outcome
    detail: str = ""
    tests_total: int = 0
    tests_passed: int = 0
    tests: list[TestResult] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    exit: str = ""
    parity: Outcome | None = None
    """By the rules of the benchmark's own checker, if it has one that differs."""
    score: float | None = None
    """The value of the answer between 0 and 1; None if it is pass or fail."""
    fragile: bool = False
    """A test close to its time limit gave another result when it was judged again."""


@dataclass(frozen=True)
class ShownTexts:
    """The texts of a failed test, for people."""

    input: str
    expected: str
    got: str


def same_output(expected: str, got: str) -> bool:
    """Whether the output is right."""
    expected, got = expected.strip(), got.strip()
    if expected == got:
        return True
    wanted, given = expected.split("\n"), got.split("\n")
    return len(wanted) == len(given) and all(map(same_line, wanted, given))


def same_line(expected: str, got: str) -> bool:
    expected, got = expected.strip(), got.strip()
    if expected == got:
        return True
    wanted, given = expected.split(), got.split()
    if len(wanted) != len(given) or not wanted:
        return False
    try:
        return all(Decimal(one) == Decimal(other) for one, other in zip(wanted, given, strict=True))
    except InvalidOperation:
        return False


def outcome_of(execution: Execution, right: bool) -> Outcome:
    """Returns the outcome of one test; `right` counts only if the program finished by itself."""
    if execution.ending is Ending.finished:
        return Outcome.PASSED if right else Outcome.WRONG_ANSWER
    return OUTCOMES[execution.ending]


def verdict(executions: Sequence[Execution], rights: Sequence[bool], total: int, shown: Sequence[ShownTexts]) -> Verdict:
    """Judges a program by its executions, which end with the first failure, out of `total` tests.

    `shown` has one entry per execution; its texts are reported for tests that did not pass.
    """
    tests = [
        _test(index, execution, outcome_of(execution, right), shown[index])
        for index, (execution, right) in enumerate(zip(executions, rights, strict=True))
    ]
    passed = sum(test.outcome is Outcome.PASSED for test in tests)
    failed = next((index for index, test in enumerate(tests) if test.outcome is not Outcome.PASSED), None)
    last = executions[-1 if failed is None else failed] if executions else None
    usage = Usage(
        cpu_s=sum(test.usage.cpu_s for test in tests),
        wall_s=sum(test.usage.wall_s for test in tests),
        peak_bytes=max((test.usage.peak_bytes for test in tests), default=0),
    )
    if failed is None and passed < total:
        outcome, detail = Outcome.INFRA_ERROR, f"only {passed} of {total} tests were carried out"
    elif failed is None:
        outcome, detail = Outcome.PASSED, f"all {total} tests passed"
    else:
        outcome = tests[failed].outcome
        detail = f"test {failed + 1} of {total}: {_why(executions[failed], outcome)}"
    return Verdict(outcome, excerpt(detail), total, passed, tests, usage, exit_of(last) if last else "")


def exit_of(execution: Execution) -> str:
    """Describes how the process ended, in a few characters."""
    if execution.signal is not None:
        return f"signal {execution.signal}"
    return "" if execution.exit_code is None else f"exit {execution.exit_code}"


def _why(execution: Execution, outcome: Outcome) -> str:
    if outcome is Outcome.WRONG_ANSWER:
        return "not the expected output"
    last = execution.stderr_tail.rstrip().rsplit("\n", 1)[-1].strip()
    if outcome is Outcome.RUNTIME_ERROR and last:
        return last
    return execution.detail or outcome.value


def _test(index: int, execution: Execution, outcome: Outcome, shown: ShownTexts) -> TestResult:
    used = execution.usage
    usage = Usage(cpu_s=used.cpu_s, wall_s=used.wall_s, peak_bytes=used.peak_bytes)
    if outcome is Outcome.PASSED:
        return TestResult(index=index, outcome=outcome, usage=usage)
    return TestResult(
        index=index,
        outcome=outcome,
        usage=usage,
        input=excerpt(shown.input),
        expected=excerpt(shown.expected),
        got=excerpt(shown.got),
        stderr=excerpt(execution.stderr_tail[-2000:]) or None,
    )
