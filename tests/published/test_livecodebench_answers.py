"""Real answers of two models with the official verdicts. Only the public tests are here, so a wrong answer may pass them."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.grading.verdict import Verdict
from runner.sandbox.executor import Executor
from tests.benchmark_records.files import read_json_lines, records
from tests.published.conftest import Find

pytestmark = [pytest.mark.data, pytest.mark.anyio]
OTHER_CHECKER = {"abc303_d", "abc338_d", "abc344_b", "abc359_d"}
"""Read on after a line, or iterate over standard input: published as passed, which parity's rules cannot give."""
FILES = {"O1-Mini": "answers_o1-mini.jsonl.gz", "Qwen2.5": "answers_qwen2.5-7b.jsonl.gz"}


@pytest.fixture(scope="module")
def answers(published: Find) -> list[tuple[dict[str, Any], dict[str, Any], str]]:
    """Official verdict, problem and program."""
    problems: dict[str, dict[str, Any]] = {}
    for part in ("", "2", "3", "4"):
        problems |= records("livecodebench", published(f"livecodebench/test{part}.public.jsonl"))
    programs = {
        (model, row["question_id"]): row["code_list"][0]
        for model, file in FILES.items()
        for row in read_json_lines(published(f"livecodebench/{file}"))
    }
    return [
        (row, problems[row["question_id"]], programs[row["file"][:7], row["question_id"]])
        for row in read_json_lines(published("livecodebench/verdicts.jsonl"))
        if row["question_id"] in problems
    ]


async def judged(chosen: list[Any], executor: Executor) -> list[tuple[dict[str, Any], Verdict]]:
    limits = ExecutionLimits(slowdown=10)
    found = await asyncio.gather(*(LiveCodeBenchTask.read(p).judge(code, executor, limits) for _, p, code in chosen))
    return [(row, verdict) for (row, _, _), verdict in zip(chosen, found, strict=True)]


async def check(chosen: list[Any], executor: Executor) -> Counter[str]:
    """Every verdict as published, or for a named reason another."""
    counts: Counter[str] = Counter()
    for row, verdict in await judged(chosen, executor):
        strict, parity = verdict.outcome is Outcome.PASSED, verdict.parity is Outcome.PASSED
        if row["cls"] != "agree":
            assert row["cls"] in ("hidden_only", "artefact_thread", "timing"), row
            counts[row["cls"]] += 1
        elif (strict, parity) == (row["official"], row["official"]):
            counts["as published"] += 1
        elif row["question_id"] in OTHER_CHECKER and strict and not parity:
            counts["other checker"] += 1
        else:
            slow = "Time Limit" in row["official_error"] or Outcome.TIME_LIMIT in (verdict.outcome, verdict.parity)
            assert slow, (row, verdict.outcome, verdict.parity, verdict.detail)
            counts["time"] += 1
    return counts


async def test_a_sample_of_real_answers(answers: list[Any], executor: Executor) -> None:
    quick = [item for item in answers[::19] if "Time Limit" not in item[0]["official_error"]]
    counts = await check(quick, executor)
    assert counts["as published"] > 60


@pytest.mark.exhaustive
async def test_all_real_answers(answers: list[Any], executor: Executor) -> None:
    counts = await check(answers, executor)
    assert counts["as published"] >= 1310
    assert counts["other checker"] == 4
    assert counts["hidden_only"] == 92
