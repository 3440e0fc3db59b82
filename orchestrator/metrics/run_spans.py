"""Spans of runs: the run, its attempts, and the launch of each, made from the rows when the run has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.db.workspaces import acting_as
from orchestrator.metrics import queries
from orchestrator.runs.lifecycle import TERMINAL, Status
from orchestrator.runs.live.feed import Live
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.system.telemetry import Attribute, SpanRecord, Telemetry, span_of, trace_of_run


async def report_ended_runs(live: Live, db: Database, telemetry: Telemetry) -> None:
    """Runs until cancelled."""

    def read(session: Session, run_id: str) -> list[SpanRecord]:
        run = session.get(ContainerRun, run_id)
        return [] if run is None else list(spans_of(run, queries.attempts(session, run_id)))

    async for batch in live.follow(after=None, inside=True):
        for event in (line.event for line in batch):
            if event.run_id is None or event.type != "transition" or event.data.get("status") not in TERMINAL:
                continue
            with acting_as(None):
                spans = await db.read(lambda session, run_id=event.run_id: read(session, run_id))  # type: ignore[misc]
            for span in spans:
                telemetry.record(span)


def spans_of(run: ContainerRun, attempts: Sequence[Attempt]) -> Iterator[SpanRecord]:
    """The run from its creation to its end. A launch lasts from its dispatch to the runner's claim."""
    ended = run.completed_at or run.created_at
    about: dict[str, Attribute] = {"benchyard.run.id": run.id, "benchyard.run.kind": run.kind}
    trace_id, run_span = trace_of_run(run.id), span_of(run.id)
    for attempt in attempts:
        over = _latest(attempt.dispatched_at, attempt.ended_at or attempt.last_event_at or ended)
        facts = about | {"benchyard.attempt": attempt.number, "benchyard.engine": attempt.engine}
        attempt_span = span_of(run.id, "attempt", attempt.number)
        claimed = attempt.claimed_at
        yield SpanRecord(
            name="launch",
            trace_id=trace_id,
            span_id=span_of(run.id, "launch", attempt.number),
            parent_id=attempt_span,
            started_at=attempt.dispatched_at,
            ended_at=_latest(attempt.dispatched_at, claimed or over),
            attributes=facts | {"benchyard.warm": bool(attempt.facts.get("stood_ready"))},
            error=None if claimed is not None else attempt.reason or "not_claimed",
        )
        yield SpanRecord(
            name="attempt",
            trace_id=trace_id,
            span_id=attempt_span,
            parent_id=run_span,
            started_at=attempt.dispatched_at,
            ended_at=over,
            attributes=facts | ({} if attempt.exit_code is None else {"benchyard.exit_code": attempt.exit_code}),
            error=attempt.reason,
        )
    yield SpanRecord(
        name=f"run {run.kind}",
        trace_id=trace_id,
        span_id=run_span,
        started_at=run.created_at,
        ended_at=_latest(run.created_at, ended),
        attributes=about | {"benchyard.run.status": run.status, "benchyard.run.attempts": run.attempt},
        error=(run.reason or str(run.status)) if run.status == Status.FAILED else None,
    )


def _latest(one: datetime, other: datetime) -> datetime:
    return max(one, other)
