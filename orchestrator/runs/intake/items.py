"""What storing a reported item means: its place in the plan, whether it may have passed, its row, and how its run counts
it. Both ways to store events use it, the one with a session and the one by plain statements."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from orchestrator.db.columns import JsonText
from orchestrator.db.session import Plain
from orchestrator.errors import Invalid
from orchestrator.runs.intake.bounds import answer_digest_of
from orchestrator.runs.queueing.plan import Plan
from runner.contract.events import ItemResult, Outcome
from runner.contract.run_spec import RunKind, call_key, judge_key

HasCall = Callable[[Plain, str, str], bool]
"""Takes a connection, a run id and a call key: whether the run has a settled model call with that key."""

Key = tuple[str, str, int]


class Counted(Protocol):
    """The progress of a run: its row, or what a plain statement has read of it."""

    items_done: int
    items_total: int
    items_passed: int
    input_tokens: int
    output_tokens: int
    waiting_for: str | None


def key_of(item: ItemResult) -> Key:
    return item.benchmark, item.problem_id, item.sample_index


def planned_position(plan: Plan, run_id: str, key: Key) -> int:
    if key not in plan.positions:
        raise Invalid(f"item {'/'.join(map(str, key))} is not part of run {run_id}")
    return plan.positions[key]


def check_was_asked(item: ItemResult, kind: str, plan: Plan, was_asked: Callable[[str], bool]) -> None:
    """An item can have passed only if the model, or the model that judges, was asked about it."""
    if item.outcome is not Outcome.PASSED and not item.score:
        return
    key = key_of(item)
    missing = _not_asked(key, kind, plan, was_asked)
    if missing:
        raise Invalid(f"item {call_key(*key)} cannot have passed: the {missing} was not asked about it through the gateway")


def _not_asked(key: Key, kind: str, plan: Plan, was_asked: Callable[[str], bool]) -> str | None:
    if kind == RunKind.BENCHMARK and not was_asked(call_key(*key)):
        return "model"
    if kind not in (RunKind.BENCHMARK, RunKind.GRADE):
        return None
    _, samples = plan.judges.get(key[0], (0, 0))
    judged = not samples or any(was_asked(judge_key(*key, number)) for number in range(samples))
    return None if judged else "judge"


def item_values(run_id: str, attempt: int, position: int, item: ItemResult, now: datetime) -> dict[str, Any]:
    """The columns of an item's row. The JSON text is written once, by the model's own serializer."""
    return {
        "run_id": run_id,
        "benchmark": item.benchmark,
        "problem_id": item.problem_id,
        "sample_index": item.sample_index,
        "position": position,
        "attempt": attempt,
        "outcome": item.outcome.value,
        "parity_outcome": item.parity_outcome.value if item.parity_outcome else None,
        "score": item.score,
        "detail": item.detail,
        "cpu_s": item.usage.cpu_s,
        "wall_s": item.usage.wall_s,
        "peak_bytes": item.usage.peak_bytes,
        "input_tokens": sum(call.input_tokens for call in item.calls),
        "output_tokens": sum(call.output_tokens for call in item.calls),
        "tests_total": item.tests_total,
        "tests_passed": item.tests_passed,
        "fragile": item.fragile,
        "answer_digest": answer_digest_of(item),
        "data": JsonText(item.model_dump_json().encode()),
        "created_at": now,
    }


def count(run: Counted, item: ItemResult, values: dict[str, Any]) -> dict[str, Any]:
    """Add a newly stored item to its run; returns the data of the event that tells of it."""
    run.items_done += 1
    run.items_total = max(run.items_total, run.items_done)
    run.items_passed += item.outcome is Outcome.PASSED
    run.input_tokens += values["input_tokens"]
    run.output_tokens += values["output_tokens"]
    run.waiting_for = None
    return {
        "benchmark": item.benchmark,
        "problem_id": item.problem_id,
        "sample_index": item.sample_index,
        "outcome": item.outcome.value,
        "done": run.items_done,
        "passed": run.items_passed,
        "total": run.items_total,
    }
