"""The state of a batch, derived from the states of its members and never stored. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Protocol, TypeVar

from orchestrator.runs.lifecycle import TERMINAL, Status


class BatchState(StrEnum):
    PENDING = "pending"  #: no member has begun
    RUNNING = "running"  #: some members are running, or wait while others have ended
    ENDING = "ending"  #: it was asked to end early, and some members have not ended yet
    COMPLETED = "completed"  #: every member completed
    ENDED = "ended"  #: it was ended early; existing results are kept
    CANCELLED = "cancelled"  #: every member was cancelled
    FAILED = "failed"  #: all have ended, and none completed
    INCOMPLETE = "incomplete"  #: all have ended; some completed, others failed or were cancelled


class EndMode(StrEnum):
    """What happens to running members when a batch is ended early."""

    FINISH = "finish"  #: they finish; only members that have not begun are dropped
    STOP = "stop"  #: they are stopped; their finished items are kept


def state_of(statuses: Iterable[str], *, end_asked: bool) -> BatchState:
    """The state of a batch, or of any part of one."""
    present = {Status(status) for status in statuses}
    if not present <= TERMINAL:
        if end_asked:
            return BatchState.ENDING
        return BatchState.PENDING if present == {Status.PENDING} else BatchState.RUNNING
    if present <= {Status.COMPLETED}:
        return BatchState.COMPLETED
    if end_asked:
        return BatchState.ENDED
    if present == {Status.CANCELLED}:
        return BatchState.CANCELLED
    return BatchState.INCOMPLETE if Status.COMPLETED in present else BatchState.FAILED


class InSlot(Protocol):
    id: str
    retry_of: str | None
    batch_slot: int | None


Run = TypeVar("Run", bound=InSlot)


def newest_by_slot(runs: Sequence[Run]) -> list[tuple[Run, list[str]]]:
    """The member of each slot, and the ids of the runs that it retried, oldest first."""
    taken_up = {run.retry_of for run in runs}
    slots: dict[int | None, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run.batch_slot or 0, run.id not in taken_up, run.id)):
        slots.setdefault(run.batch_slot, []).append(run)
    return [(slot[-1], [run.id for run in slot[:-1]]) for slot in slots.values()]


def to_cancel(status: str, mode: EndMode) -> bool:
    """Whether ending a batch early cancels a member in this state. A run that is still starting has done nothing yet."""
    return status not in TERMINAL and (mode is EndMode.STOP or status != Status.RUNNING)
