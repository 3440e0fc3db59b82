"""Live events: one tail of the event log feeds every server-sent stream. Numbers are the database's, so a client that
comes back with the last one it saw misses nothing, across restarts too. A client that does not keep up is dropped."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.db.workspaces import current_actor
from orchestrator.runs import event_queries
from orchestrator.runs.tables import Event

log = structlog.get_logger()

QUEUE_LIMIT = 2000
PAGE = 500
REPLAY_PAGE = 100
"""What a client that catches up holds in memory at a time."""
REPLAYS_AT_ONCE = 2
"""The rest of the service needs the database's readers as well."""
POLL_S = 1.0
"""Only for what other orchestrators wrote; our own commits wake the tail at once."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event without the database's own record of it, which is several times as large."""

    id: int
    run_id: str | None
    workspace_id: int
    attempt: int | None
    type: str
    data: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An event with its text for a stream, which is made once for all clients."""

    number: int
    event: LoggedEvent
    text: str

    @classmethod
    def of(cls, event: Event) -> StreamEvent:
        assert event.id is not None
        data = {
            **event.data,
            "id": event.id,
            "type": event.type,
            "run_id": event.run_id,
            "attempt": event.attempt,
            "at": event.at.isoformat(),
        }
        body = json.dumps(data, separators=(",", ":"))
        logged = LoggedEvent(event.id, event.run_id, event.workspace_id, event.attempt, event.type, event.data, event.at)
        return cls(event.id, logged, f"id: {event.id}\nevent: {event.type}\ndata: {body}\n\n")


class Subscription:
    """What one client has not taken yet."""

    def __init__(self, run_id: str | None, inside: bool = False, workspace_id: int | None = None) -> None:
        self.run_id = run_id
        self.workspace_id = workspace_id
        self.inside = inside
        self.dropped = False
        self._waiting: deque[StreamEvent] = deque()
        self._news = asyncio.Event()

    def offer(self, line: StreamEvent) -> None:
        """A client that lets too much pile up is dropped: it comes back with the last number it saw."""
        if self.dropped or (self.run_id is not None and line.event.run_id != self.run_id):
            return
        if self.workspace_id is not None and line.event.workspace_id != self.workspace_id:
            return
        if len(self._waiting) >= QUEUE_LIMIT:
            self.drop()
            return
        self._waiting.append(line)
        self._news.set()

    def drop(self) -> None:
        self.dropped = True
        self._waiting.clear()
        self._news.set()

    async def take(self, quiet_s: float | None) -> list[StreamEvent]:
        """All that has come, at least one; nothing when `quiet_s` have passed without any, or when it was dropped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(quiet_s):
                await self._news.wait()
        self._news.clear()
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


class Live:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._subscriptions: set[Subscription] = set()
        self._last = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._replays = asyncio.Semaphore(REPLAYS_AT_ONCE)
        self.closing = asyncio.Event()

    async def start(self) -> None:
        self._last = await self._db.read(event_queries.last_number)
        loop = asyncio.get_running_loop()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._wake.set)

        self._db.on_commit(wake)
        self._task = asyncio.create_task(self._tail())

    async def close(self) -> None:
        self.end_streams()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def end_streams(self) -> None:
        """End every stream; the clients come back with the last number they saw."""
        self.closing.set()
        for subscription in self._subscriptions:
            subscription.drop()

    @property
    def clients(self) -> int:
        """Open streams, without those of the service itself."""
        return sum(not subscription.inside for subscription in self._subscriptions)

    async def follow(
        self, *, after: int | None, run_id: str | None = None, quiet_s: float | None = None, inside: bool = False
    ) -> AsyncGenerator[list[StreamEvent]]:
        """Everything after number `after` (None: from now on), first from the log, then as it happens, in batches.

        An empty batch says that nothing happened for `quiet_s`. Who acts in a workspace hears of that one alone. `inside` is
        for parts of the service itself: they are no clients.
        """
        who = current_actor()
        subscription = Subscription(run_id, inside, who.workspace_id if who else None)
        self._subscriptions.add(subscription)
        try:
            seen = self._last if after is None else after
            while after is not None and not self.closing.is_set():
                past = await self.page(seen, run_id)
                if past:
                    seen = past[-1].number
                    yield past
                if len(past) < REPLAY_PAGE:
                    break
            while not self.closing.is_set():
                batch = await subscription.take(quiet_s)
                if subscription.dropped:
                    return
                fresh = [line for line in batch if line.number > seen]
                seen = fresh[-1].number if fresh else seen
                if fresh or not batch:
                    yield fresh
        finally:
            self._subscriptions.discard(subscription)

    async def page(self, after: int, run_id: str | None) -> list[StreamEvent]:
        """The next events of the log after a number. Those who catch up take turns; others need not wait."""

        def read(session: Session) -> list[StreamEvent]:
            return [StreamEvent.of(event) for event in event_queries.after(session, after, run_id=run_id, limit=REPLAY_PAGE)]

        async with self._replays:
            return await self._db.read(read)

    async def _tail(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._catch_up()
            except DatabaseUnavailable as error:
                log.warning("live tail waits", action="live_wait", error=str(error))
                await asyncio.sleep(POLL_S)

    async def _catch_up(self) -> None:
        while True:
            number = self._last
            events = await self._db.read(lambda s: event_queries.after(s, number, limit=PAGE))  # noqa: B023
            for event in events:
                line = StreamEvent.of(event)
                self._last = line.number
                for subscription in self._subscriptions:
                    subscription.offer(line)
            if len(events) < PAGE:
                return
