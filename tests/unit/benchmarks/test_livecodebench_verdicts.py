"""Programs for problems in LiveCodeBench's format, public and private tests: both verdicts are known by construction."""

from pathlib import Path

import pytest

from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.contract import ExecutionLimits
from runner.sandbox.executor import Executor
from tests.benchmark_records.files import records
from tests.benchmark_records.livecodebench import ANSWERS, Answer

LIMITS = ExecutionLimits(cpu_s=1, slowdown=10)
"""CPU time decides; the clock has room for a busy machine."""


@pytest.mark.anyio
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: f"{answer.problem} {answer.name}")
async def test_both_verdicts(answer: Answer, benchmark_files: Path, executor: Executor) -> None:
    task = LiveCodeBenchTask.read(records("livecodebench", benchmark_files / "livecodebench.jsonl")[answer.problem])
    verdict = await task.judge(answer.code, executor, LIMITS)
    assert (verdict.outcome, verdict.parity) == (answer.strict, answer.parity), verdict


@pytest.mark.anyio
async def test_a_program_that_fails_a_private_test_alone_is_wrong(benchmark_files: Path, executor: Executor) -> None:
    record = records("livecodebench", benchmark_files / "livecodebench.jsonl")["9001_A"]
    (answer,) = (answer for answer in ANSWERS if answer.name == "wrong on a private test")
    public = LiveCodeBenchTask.read({**record, "private_test_cases": []})
    assert (await public.judge(answer.code, executor, LIMITS)).outcome == "passed"
