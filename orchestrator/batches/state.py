"""The state of a batch, from the states of its members. Pure: nothing of it is ever stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Protocol, TypeVar

from orchestrator.runs.lifecycle import TERMINAL, Status


class BatchState(StrEnum):
    PENDING = "pending"  #: no member has begun
    RUNNING = "running"  #: some members are at work, or wait while others are over
    ENDING = "ending"  #: it was asked to end early, and some members are not over yet
    COMPLETED = "completed"  #: every member completed
    ENDED = "ended"  #: it was ended early; what was there is kept
    CANCELLED = "cancelled"  #: every member was cancelled
    FAILED = "failed"  #: all are over, and none completed
    INCOMPLETE = "incomplete"  #: all are over; some completed, others failed or were cancelled


class EndMode(StrEnum):
    """What becomes of members that are at work when a batch is ended."""

    FINISH = "finish"  #: they finish; only what has not begun is dropped
    STOP = "stop"  #: they are stopped; their finished items are kept


def state_of(statuses: Iterable[str], *, end_asked: bool) -> BatchState:
    """Of a batch, or of any part of one."""
    found = {Status(status) for status in statuses}
    if not found <= TERMINAL:
        if end_asked:
            return BatchState.ENDING
        return BatchState.PENDING if found == {Status.PENDING} else BatchState.RUNNING
    if found <= {Status.COMPLETED}:
        return BatchState.COMPLETED
    if end_asked:
        return BatchState.ENDED
    if found == {Status.CANCELLED}:
        return BatchState.CANCELLED
    return BatchState.INCOMPLETE if Status.COMPLETED in found else BatchState.FAILED


class InSlot(Protocol):
    id: str
    retry_of: str | None
    batch_slot: int | None


Run = TypeVar("Run", bound=InSlot)


def newest_by_slot(runs: Sequence[Run]) -> list[tuple[Run, list[str]]]:
    """The member of each slot, and the ids of the runs that it took up, oldest first."""
    taken_up = {run.retry_of for run in runs}
    slots: dict[int | None, list[Run]] = {}
    for run in sorted(runs, key=lambda each: (each.batch_slot or 0, each.id not in taken_up, each.id)):
        slots.setdefault(run.batch_slot, []).append(run)
    return [(own[-1], [run.id for run in own[:-1]]) for own in slots.values()]


def to_cancel(status: str, mode: EndMode) -> bool:
    """Whether ending a batch early stops a member in this state. One whose runner has not reported has done nothing yet."""
    return status not in TERMINAL and (mode is EndMode.STOP or status != Status.RUNNING)
