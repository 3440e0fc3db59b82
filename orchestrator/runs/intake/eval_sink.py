"""The interface that the intake needs from evals. That package is a higher layer, so the implementation is injected."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol

from sqlmodel import Session

from orchestrator.runs.tables import ContainerRun
from runner.contract.evals import EvalTask, EvalWrittenEvent, JobProgressEvent, JudgementsEvent

EvalEvent = JobProgressEvent | EvalWrittenEvent | JudgementsEvent


class EvalEventSink(Protocol):
    """All methods run in the transaction that stores the events."""

    def task(self, session: Session, run: ContainerRun) -> EvalTask:
        """The task that the runner of an eval job receives."""

    def take(self, session: Session, run: ContainerRun, event: EvalEvent, now: datetime) -> dict[str, Any]:
        """Store an event; returns its data for the live streams."""

    def finish(self, session: Session, run: ContainerRun, now: datetime) -> dict[str, Any]:
        """The job is complete."""

    def gave_up(self, session: Session, run: ContainerRun, code: str | None) -> None:
        """The runner reported that no attempt can succeed."""
