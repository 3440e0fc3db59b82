"""Judges a program by comparison with a reference solution on many inputs: HumanEval+ and MBPP+.

The reference runs in the judge's process; its results never reach the program. The whole check may use ten times the CPU
limit of a single test (60 s by default, as EvalPlus allows for a task).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.assertions import check_limits, check_verdict
from runner.grading.verdict import Verdict
from runner.sandbox.executor import Executor
from runner.sandbox.outcome import Execution

CPU_FACTOR = 10
OUTCOME_OF_TAG = {"too_slow": Outcome.TIME_LIMIT, "reference_failed": Outcome.INFRA_ERROR}
"""For the exceptions of `reference_check`."""


@dataclass(frozen=True)
class ReferenceCheck:
    """The inputs and the reference solution to compare with."""

    reference: str
    """A complete program that defines the function."""
    entry: str
    inputs: list[list[Any]]
    atol: float
    mbpp: bool = False

    def test_code(self, at_least_s: float) -> str:
        """Returns the source that the judge runs. Rules and reference have separate scopes: `entry` may be `compare`.

        It calls the program itself and defines no `check(candidate)` for the judge: a function of MBPP/56 has that name.
        """
        inputs = json.dumps([tagged(arguments) for arguments in self.inputs])
        arguments = (inputs, self.entry, self.atol, self.mbpp, at_least_s)
        return (
            f"_rules, _reference = {{'__name__': 'rules'}}, {{'__name__': 'reference'}}\n"
            f"exec(compile({_rules()!r}, 'rules.py', 'exec'), _rules)\n"
            f"exec(compile({self.reference!r}, 'reference.py', 'exec'), _reference)\n"
            f"_rules['compare'](candidate, _reference[{self.entry!r}], *{arguments!r})\n"
        )

    async def judge(self, program: str, executor: Executor, limits: ExecutionLimits, context: str = "") -> Verdict:
        test = self.test_code(at_least_s=limits.wall_s(limits.cpu_s))
        execution = await executor.run_check(
            program, test, self.entry, check_limits(limits, CPU_FACTOR * limits.cpu_s), context=context
        )
        return _verdict(execution, f"{self.entry} on {len(self.inputs)} inputs")


def inputs_of(record: Mapping[str, Any]) -> list[list[Any]]:
    base, plus = record.get("base_input"), record.get("plus_input")
    if not isinstance(base, list) or not isinstance(plus, list) or not (base or plus):
        raise ProblemError("the record has no inputs to compare on")
    return [*base, *plus]


def atol_of(record: Mapping[str, Any]) -> float:
    atol = record.get("atol", 0)
    if isinstance(atol, bool) or not isinstance(atol, (int, float)):
        raise ProblemError("atol of the record is no number")
    return atol


def tagged(value: Any) -> Any:
    """Returns a value as JSON that preserves tuples, sets, complex numbers and key types."""
    if isinstance(value, list):
        return [tagged(item) for item in value]
    if isinstance(value, tuple):
        return {"t": [tagged(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"s": [tagged(item) for item in value]}
    if isinstance(value, complex):
        return {"c": [value.real, value.imag]}
    if isinstance(value, dict):
        return {"d": [[tagged(key), tagged(item)] for key, item in value.items()]}
    return value


def _verdict(execution: Execution, shown: str) -> Verdict:
    verdict = check_verdict(execution, shown)
    outcome = OUTCOME_OF_TAG.get(execution.judge_tag)
    if outcome is None:
        return verdict
    tests = [test.model_copy(update={"outcome": outcome}) for test in verdict.tests]
    return Verdict(outcome, execution.detail, 1, 0, tests, verdict.usage, verdict.exit)


@cache
def _rules() -> str:
    return Path(__file__).with_name("reference_check.py").read_text(encoding="utf-8")
