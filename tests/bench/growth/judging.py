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
ENOUGH_S, MOST = 0.5, 100


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
    """Processor time for one solution, with every process below this one, and its time by the clock. The kernel counts a
    process's time in hundredths of a second, so a small one is graded many times."""
    used, began, done = processor_s(), time.monotonic(), 0
    while done == 0 or (processor_s() - used < ENOUGH_S and done < MOST):
        for _ in range(1 if done == 0 else min(done, MOST - done)):
            verdict = await task.judge(program, executor, ExecutionLimits())
            assert verdict.outcome is Outcome.PASSED, verdict
            done += 1
    return 1000 * max(processor_s() - used, 0.001) / done, 1000 * (time.monotonic() - began) / done
