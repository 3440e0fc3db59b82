"""What the intake needs of whoever keeps evals: its own rooms lie above this one, so it is handed in."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from sqlmodel import Session

from orchestrator.runs.tables import ContainerRun
from runner.contract.evals import EvalTask, EvalWrittenEvent, JobProgressEvent, JudgementsEvent

EvalEvent = JobProgressEvent | EvalWrittenEvent | JudgementsEvent


class EvalEventSink(Protocol):
    """Everything happens within the transaction that stores the events."""

    def task(self, session: Session, run: ContainerRun) -> EvalTask:
        """What the runner of a job is told."""

    def take(self, session: Session, run: ContainerRun, event: EvalEvent, now: datetime) -> dict[str, Any]:
        """Store an event; answers with what live streams tell of it."""

    def finish(self, session: Session, run: ContainerRun, now: datetime) -> dict[str, Any]:
        """All of the job is done."""

    def gave_up(self, session: Session, run: ContainerRun, code: str | None) -> None:
        """The runner says that no attempt can succeed."""
