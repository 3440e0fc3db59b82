"""Applies lifecycle events to stored runs: updates the state, logs the transition, and raises the alert `run.failed` for
runs outside schedules if a webhook asks for every failure."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import datetime

from sqlmodel import Session

from orchestrator.alerts import queries as schedule_alert_queries
from orchestrator.alerts.tables import Alert
from orchestrator.archives import queries as archive_queries
from orchestrator.models import queries as model_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import TERMINAL, PutBack, RunEvent, RunState, Status, apply
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.tables import ContainerRun

_COLUMNS = [field.name for field in fields(RunState)]


def state_of(run: ContainerRun) -> RunState:
    values = {name: getattr(run, name) for name in _COLUMNS}
    return RunState(**{**values, "status": Status(run.status)})


def advance(session: Session, run: ContainerRun, event: RunEvent, now: datetime) -> RunState:
    """Apply `event` to the locked row `run`. Raises IllegalTransition and changes nothing if it is not allowed."""
    before = state_of(run)
    after = apply(before, event)
    for name in _COLUMNS:
        value = getattr(after, name)
        setattr(run, name, str(value) if name in ("status", "reason") and value is not None else value)
    if after.status is not Status.RUNNING:
        run.waiting_for = None
    session.add(run)
    if after.status in TERMINAL:
        archive_queries.request_archive(session, run.id, now)
    if after.status is Status.FAILED:
        raise_failure_alert(session, run, now)
    facts = {
        "event": type(event).__name__,
        "from": before.status.value,
        "status": after.status.value,
        "attempt": after.attempt,
        "desired": after.desired,
        "fruitless": after.attempts_without_progress,
        "reason": after.reason and str(after.reason),
        "message": after.error_message,
        "given": {key: _plain(value) for key, value in asdict(event).items()},
    }
    event_queries.append(session, "transition", now, run_id=run.id, attempt=after.attempt or None, data=facts)
    return after


def put_back(session: Session, run_id: str, number: int, words: str, now: datetime) -> bool:
    """Return a run to the queue whose container never came to be. The attempt is forgotten and its number used again."""
    run = run_queries.lock(session, run_id)
    attempt = run_queries.lock_attempt(session, run_id, number)
    if run is None or attempt is None or run.attempt != number or run.status != Status.STARTING:
        return False
    if advance(session, run, PutBack(now, words), now).status is Status.PENDING:
        run.waiting_for = words
    session.delete(attempt)
    return True


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, int | float | str | None) else str(value)


KIND = "run.failed"
OF_A_SCHEDULE = "schedule"


def raise_failure_alert(session: Session, run: ContainerRun, now: datetime) -> None:
    """Runs in the transaction in which the run fails, so that the alert is raised exactly once or not at all."""
    if run.trigger_type == OF_A_SCHEDULE:
        return
    wanting = schedule_alert_queries.wanting_failures(session, run.workspace_id, run.model_id)
    if not wanting:
        return
    model = model_queries.get(session, run.model_id)
    slug = model.slug if model else None
    why = run.error_message or ""
    subject = ", ".join(filter(None, [slug, *run.benchmarks])) or run.kind
    alert = Alert(
        workspace_id=run.workspace_id,
        uid=f"msg_failed_{run.id}",
        model_id=run.model_id,
        kind=KIND,
        run_id=run.id,
        title=f"{subject}: the run failed. {why[:1].upper()}{why[1:]}".rstrip(),
        data={
            "model": slug,
            "run_id": run.id,
            "status": run.status,
            "why": why,
            "reason": run.reason,
            "kind": run.kind,
            "benchmarks": run.benchmarks,
            "trigger_type": run.trigger_type,
        },
        at=now,
    )
    schedule_alert_queries.add_for(session, alert, wanting)
