"""Stores the batches that make up nearly all of the traffic (results, heartbeats, log lines) without a session: those of
many runners by a few plain statements. Whatever changes the state of a run goes the long way, with a session, in `service`.

One transaction has four steps: lock every run in the order of the ids, decide without writing, write the items, then write
events and progress. So the event log, which PostgreSQL locks for everybody, is locked at the very end, and a batch that is
refused has written nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from orchestrator.db.session import Plain
from orchestrator.errors import ServiceError
from orchestrator.runs.intake import plain_queries
from orchestrator.runs.intake.bounds import MAX_LOG_CHARS, NAME_CHARS, bounded_item, cut, storable
from orchestrator.runs.intake.items import HasCall, check_was_asked, count, item_values, key_of, planned_position
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.queueing.plan import Plan, PositionCache
from orchestrator.runs.reports.machine_cost import MachineUsage, merged, used_after
from runner.contract.events import (
    Desired,
    EventAck,
    EventBatch,
    HeartbeatEvent,
    ItemResult,
    LogEvent,
    ProgressEvent,
)
from runner.contract.run_spec import RunKind

_EVENTS = frozenset({ProgressEvent, HeartbeatEvent, LogEvent})
_KINDS = frozenset({RunKind.BENCHMARK, RunKind.GRADE, RunKind.COMMAND})
"""Kinds of runs whose items are planned."""


@dataclass(frozen=True, slots=True)
class Post:
    """A batch of one attempt, received at `now`."""

    run_id: str
    batch: EventBatch
    now: datetime


Answer = EventAck | ServiceError | None
"""The acknowledgement, or why the batch is refused; None if it must go the long way."""


def is_plain(batch: EventBatch) -> bool:
    """Whether the batch may go the plain way: nothing in it changes the state of a run."""
    return all(type(event) in _EVENTS for event in batch.events)


@dataclass(slots=True)
class _Decided:
    """What is to be written for a batch."""

    place: int
    state: plain_queries.State
    post: Post
    records: list[tuple[ProgressEvent | HeartbeatEvent | LogEvent, ItemResult | None, dict[str, Any]]] = field(
        default_factory=list
    )
    """Events in order, with the bounded item and its row, or with the data of the event."""


class PlainBatches:
    def __init__(self, positions: PositionCache, has_call: HasCall | None, lease: timedelta) -> None:
        self._positions = positions
        self._has_call = has_call
        self._lease = lease

    def store(self, connection: Plain, posts: Sequence[Post]) -> list[Answer]:
        """Store batches of different runs in one transaction; one answer per batch, in the same order."""
        answers: list[Answer] = [None] * len(posts)
        decided = []
        for place in sorted(range(len(posts)), key=lambda place: posts[place].run_id):
            post = posts[place]
            state = plain_queries.lock(connection, post.run_id, post.batch.attempt)
            if state is None or not _is_current(state):
                continue
            try:
                decision = _Decided(place, state, post)
                self._decide(connection, decision)
                decided.append(decision)
            except ServiceError as error:
                answers[place] = error
        self._write(connection, decided)
        for decision in decided:
            ack = EventAck(ack_seq=decision.state.last_seq, desired=Desired(decision.state.desired))
            answers[decision.place] = ack
        return answers

    def _decide(self, connection: Plain, decision: _Decided) -> None:
        state, post = decision.state, decision.post
        for event in sorted(post.batch.events, key=lambda event: event.seq):
            if event.seq <= state.last_seq:
                continue
            if event.seq != state.last_seq + 1:
                break
            state.last_seq = event.seq
            if isinstance(event, ProgressEvent):
                item = bounded_item(event.item)
                plan = self._plan(connection, state.id)
                position = planned_position(plan, state.id, key_of(item))
                check_was_asked(item, state.kind, plan, lambda key: self._was_asked(connection, state.id, key))
                decision.records.append((event, item, item_values(state.id, state.number, position, item, post.now)))
            elif isinstance(event, LogEvent):
                line = {"level": event.level, "message": storable(event.message[:MAX_LOG_CHARS])}
                decision.records.append((event, None, line))
            elif isinstance(event, HeartbeatEvent):
                waiting_for = event.waiting_for and cut(event.waiting_for, NAME_CHARS)
                decision.records.append((event, None, {"waiting_for": waiting_for}))

    def _write(self, connection: Plain, decided: Sequence[_Decided]) -> None:
        if not decided:
            return
        rows = [values for decision in decided for _, item, values in decision.records if item is not None]
        stored = iter(plain_queries.insert_new_items(connection, rows))
        events = []
        for decision in decided:
            state, post = decision.state, decision.post
            for event, item, values in decision.records:
                data: dict[str, Any] | None = values
                if item is not None:
                    data = count(state, item, values) if next(stored) else None
                elif isinstance(event, HeartbeatEvent):
                    data = _news(state, values["waiting_for"])
                if data is not None:
                    events.append(_event_values(state, event, data, post.now))
            if post.batch.usage:
                _count_usage(connection, state, post.batch)
        now = max(decision.post.now for decision in decided)
        if events:
            plain_queries.append_events(connection, events)
        plain_queries.put_states(connection, [decision.state for decision in decided], now + self._lease, now)

    def _plan(self, connection: Plain, run_id: str) -> Plan:
        return self._positions.by_id(run_id, lambda: plain_queries.planned(connection, run_id))

    def _was_asked(self, connection: Plain, run_id: str, key: str) -> bool:
        return self._has_call is None or self._has_call(connection, run_id, key)


def _is_current(state: plain_queries.State) -> bool:
    """Whether the plain way may be taken; the long way says what is wrong if not."""
    current = state.token_hash is not None and state.attempt == state.number
    return current and state.status == Status.RUNNING and state.kind in _KINDS


def _news(state: plain_queries.State, waiting_for: str | None) -> dict[str, Any] | None:
    """The data of a heartbeat's event, if what the run waits for has changed."""
    if waiting_for == state.waiting_for:
        return None
    state.waiting_for = waiting_for
    return {"waiting_for": waiting_for}


def _event_values(
    state: plain_queries.State, event: ProgressEvent | HeartbeatEvent | LogEvent, data: dict[str, Any], now: datetime
) -> dict[str, Any]:
    return {
        "workspace_id": state.workspace_id,
        "run_id": state.id,
        "attempt": state.number,
        "seq": event.seq,
        "type": event.type,
        "data": data,
        "at": now,
    }


def _count_usage(connection: Plain, state: plain_queries.State, batch: EventBatch) -> None:
    stored = plain_queries.samples(connection, state.id, state.number)
    used = used_after(MachineUsage(state.vcpu_s, state.gib_s, state.throttled_s), stored, batch.usage)
    state.vcpu_s, state.gib_s, state.throttled_s = used.vcpu_s, used.gib_s, used.throttled_s
    plain_queries.put_samples(connection, state.id, state.number, merged(stored, batch.usage))
