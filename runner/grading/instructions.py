"""Judges whether an answer follows every instruction of its prompt, in the sandbox. Each instruction counts as a test."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from runner.contract.events import Outcome, TestResult, Usage
from runner.contract.run_spec import ExecutionLimits
from runner.grading.assertions import check_limits
from runner.grading.verdict import Verdict
from runner.reporting.truncation import excerpt
from runner.sandbox import inside
from runner.sandbox.executor import Executor
from runner.sandbox.outcome import Ending
from runner.sandbox.protocol.values import LIST, Tree

CPU_S = 20.0
MOST_CHARS = 1_000_000
NOT_INSTALLED = "instructions about languages cannot be judged: langdetect is not installed beside this runner"


async def judge_instructions(
    answer: str,
    instructions: Sequence[dict[str, Any]],
    executor: Executor,
    limits: ExecutionLimits,
    *,
    loose: bool,
    cpu_s: float | None = None,
) -> Verdict:
    """An answer that cannot be judged within the limits follows none of them."""
    names = [str(instruction["id"]) for instruction in instructions]
    given = [[name, instruction["arguments"]] for name, instruction in zip(names, instructions, strict=True)]
    (execution,) = await executor.run_calls(
        _program(),
        "followed",
        [[answer[:MOST_CHARS], given, loose]],
        check_limits(limits, cpu_s or CPU_S),
        lambda *_: True,
        prelude=False,
    )
    used = execution.usage
    usage = Usage(cpu_s=used.cpu_s, wall_s=used.wall_s, peak_bytes=used.peak_bytes)
    if execution.ending is Ending.sandbox_failed:
        return Verdict(Outcome.INFRA_ERROR, excerpt(execution.detail), len(names), usage=usage)
    if execution.ending is Ending.finished and execution.value is None:
        return Verdict(Outcome.INFRA_ERROR, NOT_INSTALLED, len(names), usage=usage)
    results = _results(execution.value, len(names)) if execution.ending is Ending.finished else [False] * len(names)
    tests = [
        TestResult(
            index=index,
            outcome=Outcome.PASSED if result else Outcome.WRONG_ANSWER,
            input=None if result else excerpt(f"{name} {json.dumps(instructions[index]['arguments'], ensure_ascii=False)}"),
        )
        for index, (name, result) in enumerate(zip(names, results, strict=True))
    ]
    missed = [name for name, result in zip(names, results, strict=True) if not result]
    detail = f"not followed: {', '.join(missed)}" if missed else f"all {len(names)} instructions are followed"
    if execution.ending is not Ending.finished:
        detail = f"the answer could not be judged: {execution.detail}"
    outcome = Outcome.WRONG_ANSWER if missed else Outcome.PASSED
    return Verdict(outcome, excerpt(detail), len(names), len(names) - len(missed), tests, usage)


def with_share(verdict: Verdict) -> Verdict:
    """The same verdict with the share of followed instructions as its score."""
    judged = verdict.outcome is not Outcome.INFRA_ERROR
    return replace(verdict, score=verdict.tests_passed / verdict.tests_total if judged else None)


def _results(value: Tree, count: int) -> list[bool]:
    """The child is not believed: anything but a list of that many booleans counts as nothing followed."""
    if not isinstance(value, list) or value[:1] != [LIST] or len(value) != count + 1:
        return [False] * count
    return [result is True for result in value[1:]]


@cache
def _program() -> str:
    return (Path(inside.__file__).parent / "instructions.py").read_text(encoding="utf-8")
