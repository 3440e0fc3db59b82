"""HumanEval and HumanEval+: what is run for an answer, and the verdicts of canonical and other solutions."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.adapter import Task
from runner.benchmarks.humaneval import HumanEvalTask, whole_program
from runner.benchmarks.humaneval_plus import HumanEvalPlusTask
from runner.contract import ExecutionLimits, Outcome
from runner.errors import ProblemError
from runner.grading import Verdict
from runner.sandbox.executor import Executor
from tests.benchmark_records import humaneval
from tests.benchmark_records.files import records

pytestmark = pytest.mark.anyio
LIMITS = ExecutionLimits(slowdown=10)
"""CPU time decides; the clock has room for a busy machine."""

RECORD: dict[str, Any] = {
    "task_id": "HumanEval/900",
    "prompt": 'import math\n\n\ndef helper(x):\n    return x + 1\n\n\ndef double(x: int) -> int:\n    """Twice x."""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(helper(0)) == 2\n",
}
PLUS = {**RECORD, "base_input": [[1], [2]], "plus_input": [[10**30], [-4]], "atol": 0}


async def judge_all(jobs: dict[str, tuple[Task, str]], executor: Executor) -> dict[str, Verdict]:
    done = await asyncio.gather(*(task.judge(code, executor, LIMITS) for task, code in jobs.values()))
    return dict(zip(jobs, done, strict=True))


def test_the_answer_is_run_in_the_context_of_the_task() -> None:
    prompt, entry = RECORD["prompt"], "double"
    whole = whole_program(prompt, entry, "def double(x):\n    return helper(x)")
    assert whole.startswith("import math")
    assert whole.count("def double") == 1
    assert "def helper" in whole
    assert whole_program(prompt, entry, "    return 2 * x") == prompt + "    return 2 * x\n"


def test_the_prompt_has_the_task_and_a_version() -> None:
    prompt = HumanEvalTask.read(RECORD).prompt()
    assert "def double(x: int)" in prompt.user
    assert prompt.version == "humaneval-1"


def test_the_last_block_with_the_function_is_the_answer() -> None:
    first, last = (f"```python\ndef double(x):\n    return {value}\n```\n" for value in ("0", "2*x"))
    text = f"{first}better\n{last}run\n```\n4\n```"
    assert HumanEvalTask.read(RECORD).extract(text).code == "def double(x):\n    return 2*x"


ANSWERS = {
    "right": ("def double(x):\n    return 2 * x", Outcome.PASSED),
    "continuation": ("    return 2 * x", Outcome.PASSED),
    "helper of the prompt": ("def double(x):\n    return helper(x) + x - 1", Outcome.PASSED),
    "wrong": ("def double(x):\n    return x", Outcome.WRONG_ANSWER),
    "raises": ("def double(x):\n    return 1 / 0", Outcome.RUNTIME_ERROR),
    "no function": ("x = 1", Outcome.WRONG_ANSWER),
    "not Python": ("def double(x) return", Outcome.RUNTIME_ERROR),
    "equal to everything": (
        "class Yes:\n    def __eq__(self, other):\n        return True\ndef double(x):\n    return Yes()",
        Outcome.WRONG_ANSWER,
    ),
    "ends itself": ("import os\ndef double(x):\n    os._exit(0)", Outcome.RUNTIME_ERROR),
    "breaks assert": (
        "import builtins\nbuiltins.AssertionError = KeyError\ndef double(x):\n    return 5",
        Outcome.WRONG_ANSWER,
    ),
}


@pytest.mark.parametrize("read", [HumanEvalTask.read, HumanEvalPlusTask.read], ids=["base", "plus"])
async def test_verdicts(read: Any, executor: Executor) -> None:
    task = read(PLUS)
    found = await judge_all({name: (task, code) for name, (code, _) in ANSWERS.items()}, executor)
    assert {name: verdict.outcome for name, verdict in found.items()} == {name: want for name, (_, want) in ANSWERS.items()}


async def test_an_endless_loop_is_a_time_limit(executor: Executor) -> None:
    limits = ExecutionLimits(cpu_s=0.5, slowdown=10)
    for read in (HumanEvalTask.read, HumanEvalPlusTask.read):
        verdict = await read(PLUS).judge("def double(x):\n    while True: pass", executor, limits)
        assert verdict.outcome is Outcome.TIME_LIMIT, verdict


async def test_a_reference_that_fails_is_not_the_models_fault(executor: Executor) -> None:
    task = HumanEvalPlusTask.read({**PLUS, "canonical_solution": "    return 1 // 0\n"})
    verdict = await task.judge("def double(x):\n    return 2 * x", executor, LIMITS)
    assert verdict.outcome is Outcome.INFRA_ERROR
    assert "ReferenceFailed" in verdict.detail


async def test_an_entry_may_have_a_name_of_the_rules(executor: Executor) -> None:
    record = {**PLUS, "prompt": "def compare(x):\n", "entry_point": "compare"}
    verdict = await HumanEvalPlusTask.read(record).judge("def compare(x):\n    return x * 2", executor, LIMITS)
    assert verdict.outcome is Outcome.PASSED, verdict


@pytest.mark.parametrize("change", [{"prompt": ""}, {"entry_point": "a b"}, {"test": None}, {"plus_input": 5}], ids=str)
def test_records_that_cannot_be_understood(change: dict[str, Any]) -> None:
    with pytest.raises(ProblemError):
        HumanEvalTask.read({**PLUS, **change})
        HumanEvalPlusTask.read({**PLUS, **change})


async def test_canonical_solutions_all_pass(benchmark_files: Path, executor: Executor) -> None:
    problems = records("humaneval", benchmark_files / "HumanEval.jsonl.gz")
    jobs = {
        name: (HumanEvalTask.read(record), record["prompt"] + record["canonical_solution"])
        for name, record in problems.items()
    }
    found = await judge_all(jobs, executor)
    assert {name: verdict.detail for name, verdict in found.items() if verdict.outcome is not Outcome.PASSED} == {}
    assert len(found) == 164


async def test_answers_to_published_problems_have_the_known_verdict(benchmark_files: Path, executor: Executor) -> None:
    problems = records("humaneval", benchmark_files / "HumanEval.jsonl.gz")
    jobs = {name: (HumanEvalTask.read(problems[name]), code) for name, (code, _) in humaneval.ANSWERS.items()}
    found = await judge_all(jobs, executor)
    assert {name: verdict.outcome is Outcome.PASSED for name, verdict in found.items()} == {
        name: right for name, (_, right) in humaneval.ANSWERS.items()
    }


async def test_completions_of_an_example(executor: Executor) -> None:
    task = HumanEvalTask.read(humaneval.EXAMPLE)
    found = await asyncio.gather(*(task.judge(text, executor, LIMITS) for text, _ in humaneval.EXAMPLE_SAMPLES))
    assert [verdict.outcome is Outcome.PASSED for verdict in found] == [right for _, right in humaneval.EXAMPLE_SAMPLES]
    assert found[1].outcome is Outcome.TIME_LIMIT


async def test_plus_records_accept_their_reference_and_tell_answers_apart(benchmark_files: Path, executor: Executor) -> None:
    jobs: dict[str, tuple[Task, str]] = {}
    for name, record in records("humaneval_plus", benchmark_files / "HumanEvalPlus.jsonl.gz").items():
        task = HumanEvalPlusTask.read(record)
        jobs[f"{name} reference"] = (task, record["prompt"] + record["canonical_solution"])
        for code, right in humaneval.PLUS_ANSWERS[name]:
            jobs[f"{name} {'right' if right else 'wrong'}"] = (task, code)
    found = await judge_all(jobs, executor)
    assert {name: verdict.outcome for name, verdict in found.items()} == {
        name: Outcome.WRONG_ANSWER if name.endswith("wrong") else Outcome.PASSED for name in jobs
    }
    assert len(jobs) == 3 * len(humaneval.PLUS)
