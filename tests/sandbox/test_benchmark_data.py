"""Real benchmark problems through the candidate/judge split. The data is not part of the project."""

import asyncio
import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.sandbox.executor import Executor
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Execution

DATA = Path(__file__).parents[3] / "shared/data"
LIMITS = Limits(cpu_s=6, wall_s=20, memory_bytes=512 * MIB)
PATIENT = replace(LIMITS, cpu_s=60, wall_s=200)
"""For programs that end: some compute for seconds, and a core of which others take a share makes more of them."""
ALWAYS_EQUAL = """
    class E:
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        def __lt__(self, other): return True
        __le__ = __gt__ = __ge__ = __lt__
        def __sub__(self, other): return 0
        def __rsub__(self, other): return 0
        def __abs__(self): return 0
        def __len__(self): return 0
        def __bool__(self): return True
        def __iter__(self): return iter(())
        __hash__ = None
    return E()
"""


def check_all(tasks: list[tuple[str, str, str, str]], limits: Limits = LIMITS) -> list[Execution]:
    """(program, test, entry, context) each."""

    async def main() -> list[Execution]:
        async with Executor.open(2, 58_400) as executor:
            jobs = [executor.run_check(p, test, entry, limits, context=context) for p, test, entry, context in tasks]
            return await asyncio.gather(*jobs)

    return asyncio.run(main())


def human_eval() -> list[dict[str, Any]]:
    with gzip.open(DATA / "humaneval/HumanEval.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def with_body(problem: dict[str, Any], body: str) -> tuple[str, str, str, str]:
    prompt = problem["prompt"]
    return prompt + body, problem["test"], problem["entry_point"], prompt + "\n    pass\n"


def test_canonical_solutions_pass() -> None:
    problems = human_eval()
    done = check_all([with_body(problem, problem["canonical_solution"]) for problem in problems], PATIENT)
    failed = [(p["task_id"], one) for p, one in zip(problems, done, strict=True) if not one.passed]
    assert (len(done), failed) == (164, [])


@pytest.mark.parametrize("body", [ALWAYS_EQUAL, "\n    import os; os._exit(0)\n", "\n    raise SystemExit(0)\n"])
def test_cheats_pass_nowhere(body: str) -> None:
    problems = human_eval()
    done = check_all([with_body(problem, body) for problem in problems])
    assert [p["task_id"] for p, one in zip(problems, done, strict=True) if one.passed] == []


def test_sanitized_mbpp_reference_code_passes() -> None:
    problems = json.loads((DATA / "mbpp/sanitized-mbpp.json").read_text())
    tasks = []
    for one in problems:
        defined = re.findall(r"^def (\w+)", one["code"], re.MULTILINE)
        used = (name for name in defined if re.search(rf"\b{name}\(", one["test_list"][0]))
        entry = next(used, "candidate")
        tasks.append((one["code"], "\n".join([*one["test_imports"], *one["test_list"]]), entry, ""))
    done = check_all(tasks, PATIENT)
    failed = [(p["task_id"], one) for p, one in zip(problems, done, strict=True) if not one.passed]
    assert (len(done), failed) == (427, [])


@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_graded_answers_of_a_model_are_graded_alike(name: str) -> None:
    with open(DATA / f"graded/ldb_codellama_{name}_seed.jsonl") as file:
        answers = [json.loads(line) for line in file]
    tasks = []
    for one in answers:
        context = one["prompt"] + "\n    pass\n" if name == "humaneval" else ""
        tasks.append((one["solution"], one["test"], one["entry_point"], context))
    done = check_all(tasks)
    different = [one["task_id"] for one, got in zip(answers, done, strict=True) if got.passed != one["is_solved"]]
    assert different == []
