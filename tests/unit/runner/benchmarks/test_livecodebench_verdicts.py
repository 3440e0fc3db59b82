"""Programs for problems in LiveCodeBench's format, public and private tests: both verdicts are known by construction."""

from pathlib import Path

import pytest

from runner.benchmarks.adapter import ADAPTERS, adapter_for
from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.contract.run_spec import BenchmarkSpec, ExecutionLimits
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


@pytest.mark.anyio
async def test_without_parity_there_is_one_verdict(benchmark_files: Path, executor: Executor) -> None:
    record = records("livecodebench", benchmark_files / "livecodebench.jsonl")["9001_A"]
    (answer,) = (answer for answer in ANSWERS if answer.name == "wrong on a private test")
    spec = BenchmarkSpec(name="own", adapter="livecodebench", pack_digest="", problem_ids=[], parity=False)
    adapter = adapter_for(spec)
    assert adapter is not None
    verdict = await adapter(record).judge(answer.code, executor, LIMITS)
    assert (verdict.outcome, verdict.parity) == (answer.strict, None)


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_adapter_is_there_with_and_without_parity(name: str) -> None:
    spec = BenchmarkSpec(name="b", adapter=name, pack_digest="", problem_ids=[])
    assert adapter_for(spec) is ADAPTERS[name]
    without = adapter_for(spec.model_copy(update={"parity": False}))
    assert (without is ADAPTERS[name]) == (name not in ("livecodebench", "livecodebench_self_repair"))
