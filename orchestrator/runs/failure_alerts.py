"""Raises the alert `run.failed` for a run outside schedules, where a webhook asked for every failure.

Failed runs of schedules are left to the judge of schedules, which tells every webhook of them. The caller's session may see
all workspaces, so the workspace is always named here.
"""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from orchestrator.alerts import queries as schedule_alert_queries
from orchestrator.alerts.tables import Alert
from orchestrator.models import queries as model_queries
from orchestrator.runs.tables import ContainerRun

KIND = "run.failed"
OF_A_SCHEDULE = "schedule"


def raise_failure_alert(session: Session, run: ContainerRun, now: datetime) -> None:
    """Within the transaction in which the run fails: an alert is raised once, or not at all."""
    if run.trigger_type == OF_A_SCHEDULE:
        return
    wanting = schedule_alert_queries.wanting_failures(session, run.workspace_id, run.model_id)
    if not wanting:
        return
    model = model_queries.get(session, run.model_id)
    slug = model.slug if model else None
    subject = ", ".join(filter(None, [slug, *run.benchmarks])) or run.kind
    alert = Alert(
        workspace_id=run.workspace_id,
        uid=f"msg_failed_{run.id}",
        model_id=run.model_id,
        kind=KIND,
        run_id=run.id,
        title=f"{subject}: the run failed. {run.error_message or ''}".rstrip(),
        data={
            "model": slug,
            "run_id": run.id,
            "status": run.status,
            "why": run.error_message or "",
            "reason": run.reason,
            "kind": run.kind,
            "benchmarks": run.benchmarks,
            "trigger_type": run.trigger_type,
        },
        at=now,
    )
    schedule_alert_queries.add_for(session, alert, wanting)
