"""The lifecycle of a run as a pure function: `apply(state, event)` returns the next state or raises `IllegalTransition`.

    pending -> starting -> running -> completed | failed | cancelled

A run whose calls go through a provider's batch returns from `running` to `pending` (`Deferred`) until it is `Resumed`.

It defines every legal transition. It uses no database, engine or clock: the caller must have proof of the event, for example
that a container is really gone before it reports that an attempt ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from orchestrator.runs.reasons import FINAL, Reason, sentence

MAX_WITHOUT_PROGRESS = 3
MAX_SILENT_STARTS = 8
"""The same where the runner was not heard at all although an earlier one of the run was: then it is rather the line between
runners and service that is down, and with the default time-outs eight attempts outlast a quarter of an hour of it."""


class Status(StrEnum):
    PENDING = "pending"  #: waits for capacity, or for its next attempt
    STARTING = "starting"  #: a container was requested; its runner has not reported yet
    RUNNING = "running"  #: the runner is working
    COMPLETED = "completed"  #: every event is stored and the score is computed
    FAILED = "failed"  #: given up, with a reason
    CANCELLED = "cancelled"  #: stopped on request; its container is gone


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
LIVE = frozenset({Status.STARTING, Status.RUNNING})


class IllegalTransition(Exception):
    """The event is not allowed in this state. Nothing has changed."""


@dataclass(frozen=True)
class RunState:
    """The columns of a run that the lifecycle manages."""

    status: Status = Status.PENDING
    stage: str | None = None
    desired: str = "run"
    attempt: int = 0
    attempts_without_progress: int = 0
    items_at_start: int = 0
    not_before: datetime | None = None
    start_deadline: datetime | None = None
    lease_until: datetime | None = None
    reason: str | None = None
    error_message: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    waiting_since: datetime | None = None
    """Set while it has no container because a provider's batch is to answer its calls first."""
    waited_s: float = 0.0
    """How long it has done so, which its deadline does not count."""


@dataclass(frozen=True)
class Dispatched:
    """The dispatcher took the run and will request a container."""

    at: datetime
    start_deadline: datetime
    items_done: int


@dataclass(frozen=True)
class Claimed:
    """The runner of this attempt has reported."""

    at: datetime
    lease_until: datetime


@dataclass(frozen=True)
class AttemptEnded:
    """The attempt ended without completing the run, and its container is known to be gone or stopped."""

    at: datetime
    reason: Reason
    message: str | None
    items_done: int
    backoff: timedelta = timedelta(0)


@dataclass(frozen=True)
class Deferred:
    """The runner has done all it could: the rest of its calls waits for a provider's batch. The attempt ends and is no
    failure. `not_before` is when the run goes on without being told to."""

    at: datetime
    not_before: datetime
    items_done: int


@dataclass(frozen=True)
class Resumed:
    """Nothing of the run is in a batch any more."""

    at: datetime
    not_before: datetime


@dataclass(frozen=True)
class PutBack:
    """The engine had no room for the container, or its launch was interrupted: no program was started, so the attempt does
    not count."""

    at: datetime
    message: str


@dataclass(frozen=True)
class Completed:
    """The runner reported completion and everything is stored. `reason` is set if it ended early with partial results."""

    at: datetime
    reason: Reason | None = None
    message: str | None = None


@dataclass(frozen=True)
class NothingMeasured:
    """The runner is done and everything is stored, but no item counts, so there is no score."""

    at: datetime
    reason: Reason
    message: str


@dataclass(frozen=True)
class GaveUp:
    """The runner reported that no attempt can succeed."""

    at: datetime
    reason: Reason
    message: str


@dataclass(frozen=True)
class CancelRequested:
    at: datetime


@dataclass(frozen=True)
class ClockSet:
    """The system time was changed. Holds the times of the run, converted to the new clock."""

    at: datetime
    started_at: datetime | None
    not_before: datetime | None
    start_deadline: datetime | None
    lease_until: datetime | None
    waiting_since: datetime | None = None


RunEvent = (
    Dispatched
    | Claimed
    | AttemptEnded
    | Deferred
    | Resumed
    | PutBack
    | Completed
    | NothingMeasured
    | GaveUp
    | CancelRequested
    | ClockSet
)


def apply(state: RunState, event: RunEvent) -> RunState:
    """Returns the state after `event`."""
    match state.status, event:
        case Status.PENDING, Dispatched():
            return replace(
                state,
                status=Status.STARTING,
                stage=None,
                attempt=state.attempt + 1,
                items_at_start=event.items_done,
                start_deadline=event.start_deadline,
                lease_until=None,
                not_before=None,
                waiting_since=None,
                waited_s=state.waited_s + _waited_s(state, event.at),
            )
        case Status.STARTING, Claimed():
            return replace(
                state,
                status=Status.RUNNING,
                stage="boot",
                start_deadline=None,
                lease_until=event.lease_until,
                started_at=state.started_at or event.at,
                reason=None,
                error_message=None,
            )
        case ((Status.STARTING | Status.RUNNING), AttemptEnded()):
            return _after_attempt(state, event)
        case Status.RUNNING, Deferred() if state.desired == "cancel":
            reason = Reason.CANCELLED_BY_USER
            return _terminal(state, Status.CANCELLED, event.at, reason, sentence(reason))
        case Status.RUNNING, Deferred():
            return replace(
                state,
                status=Status.PENDING,
                stage=None,
                attempts_without_progress=0,
                not_before=event.not_before,
                lease_until=None,
                reason=None,
                error_message=None,
                waiting_since=event.at,
            )
        case Status.PENDING, Resumed() if state.waiting_since is not None:
            return replace(state, not_before=event.not_before)
        case Status.STARTING, PutBack() if state.desired == "cancel":
            reason = Reason.CANCELLED_BY_USER
            return _terminal(state, Status.CANCELLED, event.at, reason, sentence(reason))
        case Status.STARTING, PutBack():
            return replace(state, status=Status.PENDING, attempt=state.attempt - 1, start_deadline=None)
        case Status.RUNNING, Completed():
            return _terminal(state, Status.COMPLETED, event.at, event.reason, event.message or sentence(event.reason))
        case Status.RUNNING, NothingMeasured() if state.desired == "cancel":
            reason = Reason.CANCELLED_BY_USER
            return _terminal(state, Status.CANCELLED, event.at, reason, sentence(reason))
        case Status.RUNNING, NothingMeasured():
            return _terminal(state, Status.FAILED, event.at, event.reason, event.message)
        case Status.RUNNING, GaveUp():
            return _terminal(state, Status.FAILED, event.at, event.reason, event.message)
        case Status.PENDING, CancelRequested():
            reason = Reason.CANCELLED_BY_USER
            return _terminal(replace(state, desired="cancel"), Status.CANCELLED, event.at, reason, sentence(reason))
        case ((Status.STARTING | Status.RUNNING), CancelRequested()):
            return replace(state, desired="cancel")
        case ((Status.PENDING | Status.STARTING | Status.RUNNING), ClockSet()):
            return replace(
                state,
                started_at=event.started_at,
                not_before=event.not_before,
                start_deadline=event.start_deadline,
                lease_until=event.lease_until,
                waiting_since=event.waiting_since,
            )
    raise IllegalTransition(f"{type(event).__name__} does not apply to a run that is {state.status}")


def _after_attempt(state: RunState, event: AttemptEnded) -> RunState:
    if state.desired == "cancel":
        reason = Reason.CANCELLED_BY_USER
        return _terminal(state, Status.CANCELLED, event.at, reason, sentence(reason))
    failures = 0 if event.items_done > state.items_at_start else state.attempts_without_progress + 1
    message = event.message or sentence(event.reason)
    silent = event.reason is Reason.START_TIMEOUT and state.started_at is not None
    if event.reason in FINAL or failures >= (MAX_SILENT_STARTS if silent else MAX_WITHOUT_PROGRESS):
        return _terminal(
            replace(state, attempts_without_progress=failures),
            Status.FAILED,
            event.at,
            event.reason,
            message,
        )
    return replace(
        state,
        status=Status.PENDING,
        stage=None,
        attempts_without_progress=failures,
        not_before=event.at + event.backoff,
        start_deadline=None,
        lease_until=None,
        reason=event.reason,
        error_message=message,
    )


def _terminal(state: RunState, status: Status, at: datetime, reason: Reason | None, message: str | None) -> RunState:
    return replace(
        state,
        status=status,
        stage="finished" if status is Status.COMPLETED else state.stage,
        completed_at=at,
        not_before=None,
        start_deadline=None,
        lease_until=None,
        reason=reason,
        error_message=message,
        waiting_since=None,
        waited_s=state.waited_s + _waited_s(state, at),
    )


def _waited_s(state: RunState, now: datetime) -> float:
    return 0.0 if state.waiting_since is None else max((now - state.waiting_since).total_seconds(), 0.0)


def backoff(failures: int, jitter: float) -> timedelta:
    """The wait before the next attempt: half a second after progress, otherwise 1, 2, 4 ... 60 s. `jitter` is in [0, 1)."""
    seconds = 0.5 if failures <= 0 else min(60.0, float(2 ** (failures - 1)))
    return timedelta(seconds=seconds * (1 + 0.5 * jitter))
