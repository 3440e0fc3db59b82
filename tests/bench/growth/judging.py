"""Grading in the sandbox against the number of tests of a problem, and against the size of a test's input."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.sandbox.executor import Executor
from tests.bench.grading import processor_s
from tests.bench.growth.curve import Curve, sizes

LINES = "import sys\nprint(sum(map(int, sys.stdin.read().split())))\n"
FUNCTION = "class Solution:\n    def total(self, numbers):\n        return sum(numbers)\n"
ROUNDS = 3


def measure(largest: int) -> list[Curve]:
    tests = Curve("grading", "Grading against tests", "tests of a problem", "ms of processor for a solution", work=True)
    size = Curve("input", "Grading against the size of the input", "bytes of input", "ms of processor for a test", work=True)
    asyncio.run(_measure(largest, tests, size))
    return [tests, size]


async def _measure(largest: int, tests: Curve, size: Curve) -> None:
    async with Executor.open(slots=1, uid_base=67_000) as executor:
        for count in sizes(1, largest, 1000):
            for name, functional in (("standard input", False), ("function calls", True)):
                task, program = _task([[1, 2, 3, number] for number in range(count)], functional)
                tests.add(name, count, *await _cost(task, program, executor))
        for bytes_ in sizes(1000, 100 * largest, 10**7):
            for name, functional in (("standard input", False), ("function calls", True)):
                task, program = _task([[7] * (bytes_ // 2)], functional)
                size.add(name, bytes_, *await _cost(task, program, executor))


def _task(inputs: list[list[int]], functional: bool) -> tuple[LiveCodeBenchTask, str]:
    form = "functional" if functional else "stdin"
    cases = [
        {
            "input": json.dumps(numbers, separators=(",", ":")) if functional else " ".join(map(str, numbers)),
            "output": str(sum(numbers)),
            "testtype": form,
        }
        for numbers in inputs
    ]
    record: dict[str, Any] = {"question_content": "Add.", "public_test_cases": cases, "private_test_cases": []}
    if functional:
        record["metadata"] = {"func_name": "total"}
    return LiveCodeBenchTask.read(record), FUNCTION if functional else LINES


async def _cost(task: LiveCodeBenchTask, program: str, executor: Executor) -> tuple[float, float]:
    """The least processor time of some rounds, with every process below this one, and that round's time."""
    costs = []
    for _ in range(ROUNDS):
        used, began = processor_s(), time.monotonic()
        verdict = await task.judge(program, executor, ExecutionLimits())
        costs.append((1000 * (processor_s() - used), 1000 * (time.monotonic() - began)))
        assert verdict.outcome is Outcome.PASSED, verdict
    return min(costs)
