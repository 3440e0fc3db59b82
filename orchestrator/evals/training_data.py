"""Splits labelled traces into those a model may see and those held out to measure it, and prepares traces for runners."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import Conflict
from orchestrator.evals import queries as eval_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.queueing.drafts import EvalExecuteTask, EvalGenerateTask
from orchestrator.runs.tables import ContainerRun
from orchestrator.traces import queries as trace_queries
from runner.contract.evals import TRACE_ID_MARK, Label, TraceLine

HELD_OUT_SHARE = 0.4
NEEDED_PER_LABEL = 2
MOST_LABELLED = 2000
"""Above this number, labelled traces are sampled: each costs sandbox time in every round of a generation."""


@dataclass(frozen=True)
class Example:
    number: int
    label: Label
    held_out: bool


def missing(counts: dict[Label, int]) -> dict[Label, int]:
    """How many more examples each label needs before an eval can be generated and measured."""
    return {label: NEEDED_PER_LABEL - counts.get(label, 0) for label in Label if counts.get(label, 0) < NEEDED_PER_LABEL}


def split(labelled: Sequence[tuple[int, Label]], seed: int, lessons: Collection[int] = ()) -> list[Example]:
    """Holds out 40 % of each label, at least one, and leaves at least one to learn from.

    `lessons` are traces that people want the model to learn from; they are held out only if no others are left.

    Two examples of a label are thus split one and one; below two, `missing` says how many are needed. The result is ordered
    by trace number, which reveals nothing about which part an example is in.
    """
    rng = random.Random(seed)
    examples: list[Example] = []
    total = len(labelled)
    for label in Label:
        numbers = sorted(number for number, rating in labelled if rating is label)
        rng.shuffle(numbers)
        numbers.sort(key=lambda number: number not in lessons)  # stable sort: keeps the random order
        if total > MOST_LABELLED:
            numbers = numbers[: max(NEEDED_PER_LABEL, len(numbers) * MOST_LABELLED // total)]
        numbers.sort(key=lambda number: number in lessons)
        held_out = min(max(1, round(len(numbers) * HELD_OUT_SHARE)), len(numbers) - 1)
        examples += [Example(number, label, position < held_out) for position, number in enumerate(numbers)]
    return sorted(examples, key=lambda example: example.number)


LABEL_WORDS = frozenset(
    [
        "label",
        "labels",
        "feedback",
        "rating",
        "ratings",
        "annotation",
        "annotations",
        "score",
        "scores",
        "human_feedback",
        "user_feedback",
        "human_label",
        "ground_truth_label",
        "thumbs",
        "thumbs_up",
        "thumbs_down",
        "verdict",
        "passed",
    ]
)
LONG_ID = 6
"""A shorter id is replaced only where it is the whole text: it may well be an ordinary word or number."""


def withheld(data: dict[str, Any], trace_id: str) -> dict[str, Any]:
    """The trace as a runner gets it: its id is masked everywhere, and metadata fields named like labels are removed."""
    metadata = data.get("metadata") or {}
    visible = {
        "input": data.get("input"),
        "output": data.get("output"),
        "steps": data.get("steps") or [],
        "metadata": {key: value for key, value in metadata.items() if key.strip().casefold() not in LABEL_WORDS},
    }
    marked: dict[str, Any] = _marked(visible, trace_id)
    return marked


def _marked(value: Any, trace_id: str) -> Any:
    if isinstance(value, str):
        if value == trace_id:
            return TRACE_ID_MARK
        return value.replace(trace_id, TRACE_ID_MARK) if len(trace_id) >= LONG_ID else value
    if isinstance(value, list):
        return [_marked(item, trace_id) for item in value]
    if isinstance(value, dict):
        return {_marked(key, trace_id): _marked(item, trace_id) for key, item in value.items()}
    return value


PART = 50


async def trace_lines(db: Database, run: ContainerRun) -> AsyncIterator[bytes]:
    """Streams all traces that are still to do. The runner gets labels of the training part only."""
    request = await db.read(partial(_trace_request, run=run))
    for start in range(0, len(request.numbers), PART):
        yield await db.read(partial(_part, request=request, numbers=request.numbers[start : start + PART]))


@dataclass(frozen=True)
class _TraceRequest:
    numbers: list[int]
    labels: dict[int, Label]
    disputed: dict[str, str]


def _trace_request(session: Session, run: ContainerRun) -> _TraceRequest:
    match run_queries.task_of(session, run.id):
        case EvalExecuteTask() as task:
            executed = eval_queries.executed_by(session, run.id)
            return _TraceRequest([number for number in task.traces if number not in executed], {}, {})
        case EvalGenerateTask() as task:
            labels = {number: label for number, label, held_out in task.examples if not held_out}
            return _TraceRequest(sorted(task.traces), labels, task.disputed)
    raise Conflict(f"run {run.id} is not an eval job")


def _part(session: Session, request: _TraceRequest, numbers: list[int]) -> bytes:
    traces = trace_queries.by_numbers(session, numbers)
    lines = [
        TraceLine(
            key=number,
            trace=withheld(traces[number].data, traces[number].id),
            label=(label := request.labels.get(number)),
            disputed=request.disputed.get(str(number), "") if label else "",
        )
        for number in numbers
        if number in traces
    ]
    return b"".join(line.model_dump_json().encode() + b"\n" for line in lines)
