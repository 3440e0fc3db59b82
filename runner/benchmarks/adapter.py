"""The interface of a benchmark, and the registry of all benchmarks.

An adapter reads a record into a task. A task builds the prompt, extracts the answer and judges it. It never talks to a
model or to the orchestrator, and the expected answers never leave it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from runner.benchmarks.defined import DefinedTask
from runner.benchmarks.gsm8k import Gsm8kTask
from runner.benchmarks.humaneval import HumanEvalPlusTask, HumanEvalTask
from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.benchmarks.mbpp import MbppPlusTask, MbppTask
from runner.benchmarks.mmlu_pro import MmluProTask
from runner.benchmarks.python_file import PythonTask
from runner.benchmarks.self_repair import SelfRepairTask
from runner.contract.run_spec import BenchmarkSpec, ExecutionLimits
from runner.grading.verdict import Verdict
from runner.llm.client import Prompt
from runner.rules.extraction import Extraction
from runner.sandbox.executor import Executor


class Task(Protocol):
    """One problem, ready to be asked and judged."""

    def prompt(self) -> Prompt: ...

    def extract(self, text: str) -> Extraction:
        """Finds the answer in the model's text."""

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict: ...


Adapter = Callable[[Mapping[str, Any]], Task]
"""Reads a record; raises `ProblemError` if it is invalid."""

ADAPTERS: Mapping[str, Adapter] = {
    "livecodebench": LiveCodeBenchTask.read,
    "livecodebench_self_repair": SelfRepairTask.read,
    "humaneval": HumanEvalTask.read,
    "humaneval_plus": HumanEvalPlusTask.read,
    "mbpp": MbppTask.read,
    "mbpp_plus": MbppPlusTask.read,
    "mmlu_pro": MmluProTask.read,
    "gsm8k": Gsm8kTask.read,
}
WITHOUT_PARITY: Mapping[str, Adapter] = {
    "livecodebench": partial(LiveCodeBenchTask.read, parity=False),
    "livecodebench_self_repair": partial(SelfRepairTask.read, parity=False),
}
"""The variants that skip the second execution by the official checker's rules."""


def adapter_for(benchmark: BenchmarkSpec) -> Adapter | None:
    """Returns None for an adapter that this version of the runner does not have."""
    if benchmark.rules is not None and benchmark.rules.program is not None:
        return partial(PythonTask.read, rules=benchmark.rules)
    if benchmark.rules is not None:
        return partial(DefinedTask.read, rules=benchmark.rules)
    adapter = ADAPTERS.get(benchmark.adapter)
    return adapter if benchmark.parity else WITHOUT_PARITY.get(benchmark.adapter, adapter)
