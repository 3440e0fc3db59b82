"""Imports traces from a file in batches. Each batch is committed separately; an interrupted import is simply repeated.

A trace that exists already is not changed; one with the same id and different content is reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import Conflict, NotFound
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.feedback import Opinion, contradicts, rate
from orchestrator.evals.service import no_trace
from orchestrator.jobs import queries as job_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.queueing.drafts import EvalExecuteTask, EvalGenerateTask
from orchestrator.system.clock import Clock
from orchestrator.traces import queries as trace_queries
from orchestrator.traces.reading import Format, LeftOut, records
from orchestrator.traces.records import TraceRecord

BATCH, BATCH_BYTES = 500, 8 << 20
KEPT_LINES = 1000
KEPT_IDS = 100


@dataclass
class ImportReport:
    """Counts of imported, unchanged, labelled and left-out traces."""

    imported: int = 0
    unchanged: int = 0
    labelled: int = 0
    left_out: int = 0
    left_out_lines: list[LeftOut] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    """The ids of the first imported traces."""

    def leave_out(self, item: LeftOut) -> None:
        self.left_out += 1
        if len(self.left_out_lines) < KEPT_LINES:
            self.left_out_lines.append(item)

    def add(self, other: ImportReport) -> None:
        self.imported += other.imported
        self.unchanged += other.unchanged
        self.labelled += other.labelled
        self.ids += other.ids[: max(0, KEPT_IDS - len(self.ids))]
        for item in other.left_out_lines:
            self.leave_out(item)


class TraceImport:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock

    async def import_file(
        self, path: Path, *, form: Format = Format.AUTO, project: str = "", eval_set_id: str | None = None
    ) -> ImportReport:
        """Imports all traces of a file. With an eval set, labels in the file become feedback in that set."""
        if eval_set_id is not None and await self._db.read(lambda s: eval_queries.get_set(s, eval_set_id)) is None:
            raise NotFound(f"there is no eval set {eval_set_id!r}; GET /api/eval-sets lists the existing ones")
        report = ImportReport()
        entries = records(path, form)
        try:
            while batch := await asyncio.to_thread(_next, entries):
                for item in batch:
                    if isinstance(item, LeftOut):
                        report.leave_out(item)
                fresh = [item for item in batch if isinstance(item, TraceRecord)]
                now = self._clock.now()
                report.add(await self._db.write(lambda s, rows=fresh, at=now: store(s, rows, project, eval_set_id, at)))  # type: ignore[misc]
        finally:
            await asyncio.to_thread(entries.close)  # type: ignore[attr-defined]
        return report


def store(
    session: Session, rows: Sequence[TraceRecord], project: str, eval_set_id: str | None, now: datetime
) -> ImportReport:
    """Stores one batch within the caller's transaction."""
    report = ImportReport()
    stored = trace_queries.digests(session, [row.id for row in rows])
    fresh: dict[str, TraceRecord] = {}
    rated: list[Opinion] = []
    for row in rows:
        digest = stored.get(row.id) or (fresh[row.id].digest if row.id in fresh else None)
        if digest is None:
            fresh[row.id] = row
        elif digest == row.digest:
            report.unchanged += 1
        else:
            why = f"trace {row.id[:80]}: a trace with this id and another content is there already"
            report.leave_out(LeftOut(row.line, why))
            continue
        if row.label is not None:
            rated.append(Opinion(row.id, row.label, row.note))
    values = [
        {"id": row.id, "project": project, "digest": row.digest, "data": row.data, "created_at": now}
        for row in fresh.values()
    ]
    trace_queries.add(session, values)
    if eval_set_id is not None and rated:
        rate(session, eval_set_id, rated, now)
        report.labelled = len(rated)
    report.imported, report.ids = len(fresh), list(fresh)[:KEPT_IDS]
    return report


def _next(entries: Iterator[TraceRecord | LeftOut]) -> list[TraceRecord | LeftOut]:
    batch: list[TraceRecord | LeftOut] = []
    size = 0
    for item in entries:
        batch.append(item)
        size += item.size_bytes if isinstance(item, TraceRecord) else 0
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            break
    return batch


def remove_trace(session: Session, trace_id: str) -> None:
    """Raises `Conflict` while a job works on the trace. Verdicts in the tests of generated evals stay."""
    number = trace_queries.numbers(session, [trace_id]).get(trace_id)
    if number is None:
        raise no_trace(trace_id)
    ids = eval_queries.judges_of(session, number)
    evals = [row for row in (eval_queries.lock(session, id_) for id_ in sorted(ids)) if row is not None]
    for job_id in job_queries.open_eval_jobs(session):
        task = run_queries.task_of(session, job_id)
        if isinstance(task, EvalGenerateTask | EvalExecuteTask) and number in task.traces:
            raise Conflict(f"job {job_id} works on trace {trace_id!r}; wait until it is over, or cancel it")
    for row in evals:
        execution = eval_queries.executions_of(session, row.id, [number]).get(number)
        opinion = trace_queries.feedback_of(session, row.eval_set_id, [number]).get(number)
        if execution is not None:
            row.execution_count -= 1
            row.passed_count -= execution.passed is True
            row.failure_count -= execution.failure is not None
            row.contradiction_count -= contradicts(execution.passed, opinion.rating if opinion else None)
            session.add(row)
            session.expunge(execution)
    session.flush()
    eval_queries.forget_trace(session, number)
    trace_queries.delete_trace(session, number)
