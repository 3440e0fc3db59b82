"""The traces of a job as its runner gets them: only what it may see, in parts, as JSON lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import Conflict
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.withholding import withheld
from orchestrator.jobs import queries as job_queries
from orchestrator.runs.tables import ContainerRun
from orchestrator.traces import queries as trace_queries
from runner.contract import RunKind
from runner.contract_evals import Label, TraceLine

PART = 50


async def trace_lines(db: Database, run: ContainerRun) -> AsyncIterator[bytes]:
    """Every trace that is still to do. Of labels, a runner gets those of the training part only."""
    wanted = await db.read(partial(_wanted, run=run))
    for start in range(0, len(wanted.numbers), PART):
        yield await db.read(partial(_part, wanted=wanted, numbers=wanted.numbers[start : start + PART]))


@dataclass(frozen=True)
class _Wanted:
    numbers: list[int]
    labels: dict[int, Label]
    disputed: dict[str, str]


def _wanted(session: Session, run: ContainerRun) -> _Wanted:
    job = job_queries.eval_job(session, run.id)
    if job is None:
        raise Conflict(f"run {run.id} is no job about evals")
    if run.kind == RunKind.EVAL_EXECUTE:
        done = eval_queries.executed_by(session, run.id)
        return _Wanted([number for number in job.payload["traces"] if number not in done], {}, {})
    examples = job.payload["examples"]
    labels = {number: Label(label) for number, label, held_out in examples if not held_out}
    numbers = sorted([number for number, _, _ in examples] + job.payload["probes"])
    return _Wanted(numbers, labels, job.payload.get("disputed", {}))


def _part(session: Session, wanted: _Wanted, numbers: list[int]) -> bytes:
    found = trace_queries.by_numbers(session, numbers)
    lines = [
        TraceLine(
            key=number,
            trace=withheld(found[number].data, found[number].id),
            label=(label := wanted.labels.get(number)),
            disputed=wanted.disputed.get(str(number), "") if label else "",
        )
        for number in numbers
        if number in found
    ]
    return b"".join(line.model_dump_json().encode() + b"\n" for line in lines)
