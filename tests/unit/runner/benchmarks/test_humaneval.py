"""HumanEval and HumanEval+: what is run for an answer, and the verdicts of canonical and other solutions."""

import ast
import asyncio
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.adapter import Task
from runner.benchmarks.humaneval import HumanEvalPlusTask, HumanEvalTask, whole_program
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.verdict import Verdict
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


LIES = {
    "names": "class ReferenceFailed(Exception): pass\ndef double(x):\n    raise ReferenceFailed('input 0: reference')",
    "text": "def double(x):\n    raise ValueError('The test raised ReferenceFailed: input 0: oops')",
    "text of an exit": "def double(x):\n    raise SystemExit('The test raised ReferenceFailed: input 0')",
    "text when loaded": "raise ValueError('The test raised ReferenceFailed: input 0: oops')",
    "assertion": "def double(x):\n    assert False, 'The test raised ReferenceFailed: input 0: oops'",
    "tag": "class E(ValueError):\n    judge_tag = 'reference_failed'\ndef double(x):\n    raise E('reference_failed')",
    "tag on a built-in": (
        "import ctypes\nraise_it = ValueError('judge_tag')\nraise_it.judge_tag = 'reference_failed'\n"
        "def double(x):\n    raise raise_it"
    ),
    "value": "def double(x):\n    return 'The test raised ReferenceFailed: input 0'",
    "standard error": "import sys\ndef double(x):\n    sys.stderr.write('The test raised ReferenceFailed: x\\n')\n    0 / 0",
    "forged reply": (
        "import json, os\ndef double(x):\n    b = json.dumps(['raised', 'ReferenceFailed', 'reference_failed']).encode()\n"
        "    os.write(4, len(b).to_bytes(4, 'little') + b)\n    os._exit(0)"
    ),
    "forged exception": (
        "import json, os\ndef double(x):\n    b = json.dumps(['x', ['ReferenceFailed', 'BaseException'], 'x']).encode()\n"
        "    os.write(4, len(b).to_bytes(4, 'little') + b)\n    os._exit(0)"
    ),
    "ran out of time": "def double(x):\n    raise TimeoutError('The test raised TooSlow: one input took too long')",
}


@pytest.mark.parametrize("read", [HumanEvalTask.read, HumanEvalPlusTask.read], ids=["base", "plus"])
async def test_nothing_that_a_program_says_takes_it_out_of_the_score(read: Any, executor: Executor) -> None:
    found = await judge_all({name: (read(PLUS), code) for name, code in LIES.items()}, executor)
    assert {name: verdict.outcome for name, verdict in found.items()} == {
        name: Outcome.WRONG_ANSWER if name in ("assertion", "value") else Outcome.RUNTIME_ERROR for name in LIES
    }


async def test_an_entry_may_have_a_name_of_the_rules(executor: Executor) -> None:
    record = {**PLUS, "prompt": "def compare(x):\n", "entry_point": "compare"}
    verdict = await HumanEvalPlusTask.read(record).judge("def compare(x):\n    return x * 2", executor, LIMITS)
    assert verdict.outcome is Outcome.PASSED, verdict


@pytest.mark.parametrize("change", [{"prompt": ""}, {"entry_point": "a b"}, {"test": None}, {"plus_input": 5}], ids=str)
def test_records_that_cannot_be_understood(change: dict[str, Any]) -> None:
    with pytest.raises(ProblemError):
        HumanEvalTask.read({**PLUS, **change})
        HumanEvalPlusTask.read({**PLUS, **change})


def officially(record: dict[str, Any], completion: str) -> bool:
    """What the benchmark's own script does with a completion."""
    program = f"{record['prompt']}{completion}\n{record['test']}\ncheck({record['entry_point']})"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=False)
    return done.returncode == 0


def shapes(record: dict[str, Any]) -> dict[str, str]:
    """The right answer in the shapes in which models give it."""
    body, entry, prompt = record["canonical_solution"], record["entry_point"], record["prompt"]
    start = prompt.index(f"def {entry}(")
    whole, signature = prompt[start:] + body, prompt[start:].split("\n")[0]
    indented = "".join(f"    {line}" for line in whole.splitlines(keepends=True))
    names = ", ".join(name.arg for name in ast.parse(f"{signature}\n    pass").body[0].args.args)  # type: ignore[attr-defined]
    return {
        "continuation": body,
        "continuation after a comment": f"# the answer\n{body}",
        "continuation after empty lines": f"\n\n{body}",
        "continuation, then the function again": f"{body}\n\n{whole}",
        "continuation, then a draft of the function": f"{body}\n\n{signature}\n    return {entry}\n",
        "continuation, then the function in a text": f'{body}\n\nnotes = """\n{signature}\n"""\n',
        "the function inside itself": f"{indented}\n    return {entry}({names})\n",
        "the function inside itself and not called": indented,
        "whole function": whole,
        "whole function with imports": f"import math\nimport typing\n\n{prompt}{body}",
        "whole function after a comment": f"# {entry}\n{whole}",
        "whole function after a helper": f"def own_helper(x):\n    return x\n\n\n{whole}",
        "continuation without its indentation": body.lstrip(),
        "an unfinished function": f"{body}\n\n{signature}\n",
        "nothing": "",
    }


async def test_every_shape_of_an_answer_is_judged_as_officially(benchmark_files: Path, executor: Executor) -> None:
    problems = records("humaneval", benchmark_files / "HumanEval.jsonl.gz")
    chosen = [problems[f"HumanEval/{number}"] for number in (0, 2, 10, 23, 53)]
    chosen = [record for record in chosen if record["prompt"].count("def ") == 1 or record["task_id"].endswith("/10")]
    jobs = {
        (record["task_id"], shape): (HumanEvalTask.read(record), record, answer)
        for record in chosen
        for shape, answer in shapes(record).items()
    }
    judged = await asyncio.gather(*(task.judge(answer, executor, LIMITS) for task, _, answer in jobs.values()))
    official = [officially(record, answer) for _, record, answer in jobs.values()]
    ours = [verdict.outcome is Outcome.PASSED for verdict in judged]
    assert dict(zip(jobs, ours, strict=True)) == dict(zip(jobs, official, strict=True))
    assert 9 * len(chosen) <= sum(ours) < len(ours)


async def test_continuations_in_a_block_with_words_around_them(executor: Executor) -> None:
    task = HumanEvalTask.read(RECORD)
    repeated = "    return 2 * x\n\n\ndef double(x):\n    return 2 * x"
    for code in ("    return 2 * x", repeated, "def double(x):\n    return 2 * x"):
        for text in (f"```python\n{code}\n```", f"Here it is:\n\n```\n{code}\n```\nIt doubles."):
            found = task.extract(text).code
            assert found == code
            assert (await task.judge(found, executor, LIMITS)).outcome is Outcome.PASSED


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
