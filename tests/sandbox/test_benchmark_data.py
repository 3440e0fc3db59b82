"""Benchmark problems through the split of candidate and judge: HumanEval as published, MBPP made in its format."""

import asyncio
import gzip
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from runner.sandbox.executor import Executor
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Execution
from tests.benchmark_records import humaneval, mbpp
from tests.uids import own_uid_base

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
        async with Executor.open(2, own_uid_base()) as executor:
            jobs = [executor.run_check(p, test, entry, limits, context=context) for p, test, entry, context in tasks]
            return await asyncio.gather(*jobs)

    return asyncio.run(main())


def human_eval() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(humaneval.published_file()).splitlines()]


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


def mbpp_task(row: dict[str, Any], code: str) -> tuple[str, str, str, str]:
    entry = next(name for name in re.findall(r"^def (\w+)", row["code"], re.MULTILINE) if f"{name}(" in row["test_list"][0])
    imports = row.get("test_imports", [])
    program = "\n".join([code, row.get("test_setup_code", "")])
    return program, "\n".join([*imports, *row["test_list"]]), entry, ""


def test_reference_code_of_mbpp_passes() -> None:
    problems = [*mbpp.FULL, *mbpp.SANITIZED]
    done = check_all([mbpp_task(row, row["code"]) for row in problems], PATIENT)
    assert [(row["task_id"], one) for row, one in zip(problems, done, strict=True) if not one.passed] == []


def test_answers_are_told_apart() -> None:
    by_id = {problem["task_id"]: problem for problem in human_eval()}
    tasks, rights = [], []
    for name, (code, right) in humaneval.ANSWERS.items():
        prompt = by_id[name]["prompt"]
        whole = code if "def " in code else prompt + code
        tasks.append((whole, by_id[name]["test"], by_id[name]["entry_point"], prompt + "\n    pass\n"))
        rights.append((name, right))
    for row in mbpp.FULL:
        name = f"MBPP/{row['task_id']}"
        tasks += [mbpp_task(row, code) for code, _ in mbpp.ANSWERS[name]]
        rights += [(name, right) for _, right in mbpp.ANSWERS[name]]
    done = check_all(tasks, PATIENT)
    assert [(name, one.passed) for (name, _), one in zip(rights, done, strict=True)] == rights
