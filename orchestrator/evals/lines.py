"""The traces of a job as its runner gets them: only what it may see, in parts, as JSON lines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from sqlmodel import Session

from orchestrator.db import eval_queries, job_queries, trace_queries
from orchestrator.db.session import Database
from orchestrator.db.tables import ContainerRun
from orchestrator.errors import Conflict
from orchestrator.evals.withholding import withheld
from runner.contract import RunKind
from runner.contract_evals import Label, TraceLine

PART = 50


async def trace_lines(db: Database, run: ContainerRun) -> AsyncIterator[bytes]:
    """Every trace that is still to do. Of labels, a runner gets those of the training part only."""
    wanted, labels = await db.read(partial(_wanted, run=run))
    for start in range(0, len(wanted), PART):
        yield await db.read(partial(_part, numbers=wanted[start : start + PART], labels=labels))


def _wanted(session: Session, run: ContainerRun) -> tuple[list[int], dict[int, Label]]:
    job = job_queries.eval_job(session, run.id)
    if job is None:
        raise Conflict(f"run {run.id} is no job about evals")
    if run.kind == RunKind.EVAL_EXECUTE:
        done = eval_queries.executed_by(session, run.id)
        return [number for number in job.payload["traces"] if number not in done], {}
    examples = job.payload["examples"]
    labels = {number: Label(label) for number, label, held_out in examples if not held_out}
    return sorted([number for number, _, _ in examples] + job.payload["probes"]), labels


def _part(session: Session, numbers: list[int], labels: dict[int, Label]) -> bytes:
    found = trace_queries.by_numbers(session, numbers)
    lines = [
        TraceLine(key=number, trace=withheld(found[number].data, found[number].id), label=labels.get(number))
        for number in numbers
    ]
    return b"".join(line.model_dump_json().encode() + b"\n" for line in lines)
