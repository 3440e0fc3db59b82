"""Rows for tests, with everything filled in that a test does not care about."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from orchestrator.commands.service import command_task
from orchestrator.models.tables import LlmModel
from orchestrator.runs.queueing.drafts import BenchmarkTask, EvalExecuteTask, EvalGenerateTask, PlannedBenchmark
from orchestrator.runs.tables import Attempt, ContainerRun, ItemRow
from orchestrator.system.identifiers import token_hash, uuid7
from runner.contract.commands import CommandTask
from tests.manual_clock import START


def a_model(slug: str = "m1", **changed: Any) -> LlmModel:
    values = {"provider": "demo", "name": slug, "protocol": "openai_chat", "created_at": START, "updated_at": START}
    return LlmModel(slug=slug, **{**values, **changed})


def a_benchmark_task(**changed: Any) -> BenchmarkTask:
    values: dict[str, Any] = {"name": "sample", "adapter": "livecodebench", "pack_digest": "d", "problem_ids": ["p0", "p1"]}
    return BenchmarkTask(benchmarks=[PlannedBenchmark(**{**values, **changed})])


def a_run(model_id: int | None = 1, *, items: int = 2, now: datetime = START, **changed: Any) -> ContainerRun:
    problems = [f"p{number}" for number in range(items)]
    values: dict[str, Any] = {
        "id": uuid7(now),
        "model_id": model_id,
        "benchmarks": ["sample"],
        "sample_size": items,
        "instance_type": "basic",
        "deadline_s": 3600,
        "task": {
            "benchmark": a_benchmark_task(problem_ids=problems),
            "eval_generate": EvalGenerateTask(name="", examples=[]),
            "eval_execute": EvalExecuteTask(traces=[]),
            "command": command_task(CommandTask(image="py:3", argv=["true"], name="sample", repeats=max(items, 1))),
        }.get(changed.get("kind", "benchmark")),
        "items_total": items,
        "created_at": now,
    }
    return ContainerRun(**{**values, **changed})


def an_attempt(run_id: str, number: int = 1, token: str | None = "secret", **changed: Any) -> Attempt:
    values: dict[str, Any] = {
        "token_hash": token_hash(token) if token else None,
        "engine": "fake",
        "instance_type": "basic",
        "container_name": f"benchyard-run-{run_id}-a{number}",
        "dispatched_at": START,
    }
    return Attempt(run_id=run_id, number=number, **{**values, **changed})


def an_item(run_id: str, problem_id: str = "p0", **changed: Any) -> ItemRow:
    values: dict[str, Any] = {
        "benchmark": "sample",
        "sample_index": 0,
        "position": 0,
        "attempt": 1,
        "outcome": "passed",
        "data": {"answer": "x" * 50},
        "created_at": START,
    }
    return ItemRow(run_id=run_id, problem_id=problem_id, **{**values, **changed})
