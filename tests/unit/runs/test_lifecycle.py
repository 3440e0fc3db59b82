"""The life of a run as a table: every legal edge, every illegal pair, and what any sequence of events keeps true."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.runs.lifecycle import (
    LIVE,
    MAX_SILENT_STARTS,
    MAX_WITHOUT_PROGRESS,
    TERMINAL,
    AttemptEnded,
    CancelRequested,
    Claimed,
    Completed,
    Deferred,
    Dispatched,
    GaveUp,
    IllegalTransition,
    NothingMeasured,
    Resumed,
    RunEvent,
    RunState,
    Status,
    apply,
    backoff,
)
from orchestrator.runs.reasons import FINAL, SENTENCES, Reason, sentence
from tests.manual_clock import START

SOON = START + timedelta(seconds=30)
DISPATCHED = Dispatched(START, SOON, 0)
CLAIMED = Claimed(START, SOON)
LOST = AttemptEnded(START, Reason.CONTAINER_GONE, None, 0, timedelta(seconds=1))
COMPLETED = Completed(START)
GAVE_UP = GaveUp(START, Reason.DATASET_ERROR, "no such problem")
NOTHING = NothingMeasured(START, Reason.PROVIDER_ERROR, "nothing was measured")
CANCEL = CancelRequested(START)
DEFERRED = Deferred(START, START + timedelta(hours=72), 0)
EVENTS: dict[str, RunEvent] = {
    "dispatched": DISPATCHED,
    "claimed": CLAIMED,
    "attempt ended": LOST,
    "completed": COMPLETED,
    "gave up": GAVE_UP,
    "nothing measured": NOTHING,
    "cancel": CANCEL,
    "deferred": DEFERRED,
}
LEGAL = {
    (Status.PENDING, "dispatched"): Status.STARTING,
    (Status.PENDING, "cancel"): Status.CANCELLED,
    (Status.STARTING, "claimed"): Status.RUNNING,
    (Status.STARTING, "attempt ended"): Status.PENDING,
    (Status.STARTING, "cancel"): Status.STARTING,
    (Status.RUNNING, "attempt ended"): Status.PENDING,
    (Status.RUNNING, "completed"): Status.COMPLETED,
    (Status.RUNNING, "gave up"): Status.FAILED,
    (Status.RUNNING, "nothing measured"): Status.FAILED,
    (Status.RUNNING, "cancel"): Status.RUNNING,
    (Status.RUNNING, "deferred"): Status.PENDING,
}
ILLEGAL = [(status, name) for status in Status for name in EVENTS if (status, name) not in LEGAL]


def at(status: Status, **changed: object) -> RunState:
    return replace(RunState(status=status, attempt=0 if status is Status.PENDING else 1), **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(("edge", "expected"), LEGAL.items(), ids=[f"{status} + {name}" for status, name in LEGAL])
def test_legal_edge(edge: tuple[Status, str], expected: Status) -> None:
    assert apply(at(edge[0]), EVENTS[edge[1]]).status is expected


@pytest.mark.parametrize(("status", "name"), ILLEGAL, ids=[f"{status} + {name}" for status, name in ILLEGAL])
def test_illegal_pair(status: Status, name: str) -> None:
    with pytest.raises(IllegalTransition, match=str(status)):
        apply(at(status), EVENTS[name])


def test_a_dispatch_is_the_next_attempt() -> None:
    after = apply(at(Status.PENDING, attempt=2, not_before=START, reason="container_gone"), Dispatched(START, SOON, 7))
    assert (after.attempt, after.items_at_start, after.start_deadline, after.not_before) == (3, 7, SOON, None)


def test_a_claim_clears_the_reason_of_the_attempt_before_and_keeps_the_first_start() -> None:
    first = START - timedelta(hours=1)
    after = apply(at(Status.STARTING, reason="container_gone", error_message="x", started_at=first), CLAIMED)
    assert (after.reason, after.error_message, after.started_at, after.stage) == (None, None, first, "boot")


@pytest.mark.parametrize("reason", list(Reason), ids=str)
def test_an_ended_attempt_by_reason(reason: Reason) -> None:
    after = apply(at(Status.RUNNING), replace(LOST, reason=reason))
    assert after.status is (Status.FAILED if reason in FINAL else Status.PENDING)
    assert (after.reason, after.error_message) == (reason, SENTENCES[reason])


@pytest.mark.parametrize(
    ("before", "items", "status", "counted"),
    [
        pytest.param(0, 0, Status.PENDING, 1, id="first without a new item"),
        pytest.param(MAX_WITHOUT_PROGRESS - 1, 0, Status.FAILED, MAX_WITHOUT_PROGRESS, id="third in a row"),
        pytest.param(MAX_WITHOUT_PROGRESS - 1, 1, Status.PENDING, 0, id="a new item begins anew"),
    ],
)
def test_attempts_without_progress(before: int, items: int, status: Status, counted: int) -> None:
    after = apply(at(Status.RUNNING, attempts_without_progress=before), replace(LOST, items_done=items))
    assert (after.status, after.attempts_without_progress) == (status, counted)


@pytest.mark.parametrize(
    ("before", "claimed_before", "status"),
    [
        pytest.param(MAX_WITHOUT_PROGRESS - 1, True, Status.PENDING, id="a runner of it was heard: the line may be down"),
        pytest.param(MAX_SILENT_STARTS - 1, True, Status.FAILED, id="but not for ever"),
        pytest.param(MAX_WITHOUT_PROGRESS - 1, False, Status.FAILED, id="none was ever heard"),
    ],
)
def test_runners_that_are_not_heard_at_all(before: int, claimed_before: bool, status: Status) -> None:
    state = at(Status.STARTING, attempts_without_progress=before, started_at=START if claimed_before else None)
    after = apply(state, replace(LOST, reason=Reason.START_TIMEOUT))
    assert (after.status, after.attempts_without_progress) == (status, before + 1)


def test_a_wanted_cancel_beats_the_reason_of_the_end() -> None:
    after = apply(at(Status.RUNNING, desired="cancel"), replace(LOST, reason=Reason.OUT_OF_MEMORY))
    assert (after.status, after.reason) == (Status.CANCELLED, Reason.CANCELLED_BY_USER)


def test_completed_may_win_against_a_cancel() -> None:
    assert apply(at(Status.RUNNING, desired="cancel"), COMPLETED).status is Status.COMPLETED


def test_every_reason_has_one_sentence() -> None:
    assert set(SENTENCES) == set(Reason)
    assert all(text.endswith(".") and len(text) > 20 for text in SENTENCES.values())
    assert sentence(None) is None


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0.5), (1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (40, 60)], ids=str)
def test_backoff(failures: int, seconds: float) -> None:
    assert backoff(failures, 0.0) == timedelta(seconds=seconds)
    assert backoff(failures, 0.999) <= timedelta(seconds=seconds * 1.5)


events = st.one_of(
    st.builds(Dispatched, st.just(START), st.just(SOON), st.integers(0, 3)),
    st.just(CLAIMED),
    st.builds(AttemptEnded, st.just(START), st.sampled_from(Reason), st.none(), st.integers(0, 3)),
    st.builds(Deferred, st.just(START), st.just(SOON), st.integers(0, 3)),
    st.builds(Completed, st.just(START), st.sampled_from([None, Reason.BUDGET_EXHAUSTED])),
    st.just(GAVE_UP),
    st.just(CANCEL),
)


@given(st.lists(events, max_size=40))
def test_any_sequence_keeps_the_invariants(sequence: list[RunEvent]) -> None:
    state, accepted = RunState(), []
    for event in sequence:
        before = state
        try:
            state = apply(before, event)
        except IllegalTransition:
            assert state is before
            continue
        accepted.append(event)
        assert before.status not in TERMINAL, "terminal is final"
        assert state.attempt - before.attempt in (0, 1)
        assert (state.completed_at is not None) == (state.status in TERMINAL)
        assert (state.start_deadline is not None) == (state.status is Status.STARTING)
        assert (state.lease_until is not None) == (state.status is Status.RUNNING)
        assert state.status not in LIVE or state.attempt >= 1
        limit = MAX_SILENT_STARTS if state.started_at else MAX_WITHOUT_PROGRESS
        assert state.attempts_without_progress < limit or state.status is Status.FAILED
        assert state.status not in (Status.FAILED, Status.CANCELLED) or (state.reason and state.error_message)
        assert state.status is not Status.CANCELLED or state.desired == "cancel"
    # The accepted events alone lead to the same state (I6).
    again = RunState()
    for event in accepted:
        again = apply(again, event)
    assert again == state


def test_a_run_that_waits_for_a_batch_loses_neither_an_attempt_nor_time() -> None:
    failed_before = RunState(status=Status.RUNNING, attempt=4, attempts_without_progress=2, started_at=START)
    waiting = apply(failed_before, DEFERRED)
    assert (waiting.status, waiting.attempt, waiting.attempts_without_progress) == (Status.PENDING, 4, 0)
    assert (waiting.waiting_since, waiting.not_before) == (START, DEFERRED.not_before)
    tomorrow = START + timedelta(hours=20)
    ready = apply(waiting, Resumed(tomorrow, tomorrow))
    assert (ready.status, ready.not_before) == (Status.PENDING, tomorrow)
    again = apply(ready, Dispatched(tomorrow, tomorrow + timedelta(seconds=30), 0))
    assert (again.attempt, again.waiting_since, again.waited_s) == (5, None, 20 * 3600)


def test_only_a_run_that_waits_can_be_resumed() -> None:
    with pytest.raises(IllegalTransition):
        apply(RunState(), Resumed(START, START))


def test_a_cancelled_run_does_not_wait_for_a_batch() -> None:
    assert apply(RunState(status=Status.RUNNING, desired="cancel"), DEFERRED).status is Status.CANCELLED
