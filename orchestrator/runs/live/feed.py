"""Live events: one task tails the event log and feeds every server-sent stream. Event numbers come from the database, so a
client that reconnects with the last number it saw misses nothing, even across restarts. Slow clients are dropped."""

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
from orchestrator.runs.live import queries as event_queries

log = structlog.get_logger()

QUEUE_LIMIT = 2000
PAGE = 500
REPLAY_PAGE = 100
"""Events that a client holds in memory at a time while it catches up."""
REPLAYS_AT_ONCE = 2
"""Limits concurrent replays: the rest of the service needs database readers too."""
POLL_S = {"sqlite": 30.0, "postgresql": 1.0}
"""Only needed for events of other orchestrators, of which SQLite has none; our own commits wake the tail at once."""
AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as a plain value; the ORM object is several times as large."""

    id: int
    run_id: str | None
    workspace_id: int
    attempt: int | None
    type: str
    data: dict[str, Any]
    at: datetime


class StreamEvent:
    """An event with its text for streams, which is rendered once for all clients, when the first one wants it."""

    __slots__ = ("_text", "event")

    def __init__(self, event: LoggedEvent) -> None:
        self.event = event
        self._text: str | None = None

    @classmethod
    def of(cls, row: Any) -> StreamEvent:
        """Of a row of the log."""
        return cls(LoggedEvent(row.id, row.run_id, row.workspace_id, row.attempt, row.type, row.data, row.at))

    @property
    def number(self) -> int:
        return self.event.id

    @property
    def text(self) -> str:
        if self._text is None:
            event = self.event
            data = {
                **event.data,
                "id": event.id,
                "type": event.type,
                "run_id": event.run_id,
                "attempt": event.attempt,
                "at": event.at.isoformat(),
            }
            body = json.dumps(data, separators=(",", ":"))
            self._text = f"id: {event.id}\nevent: {event.type}\ndata: {body}\n\n"
        return self._text


class Subscription:
    """The events that one client has not received yet."""

    def __init__(self, run_id: str | None, inside: bool = False, workspace_id: int | None = None) -> None:
        self.run_id = run_id
        self.workspace_id = workspace_id
        self.inside = inside
        self.dropped = False
        self._waiting: deque[StreamEvent] = deque()
        self._news = asyncio.Event()

    def offer(self, line: StreamEvent) -> None:
        """Queue an event for the client. A client whose queue is full is dropped; it can reconnect and catch up."""
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
        """Waits for events and returns all queued ones; empty if none came within `quiet_s` or the client was dropped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(quiet_s):
                await self._news.wait()
        self._news.clear()
        batch = list(self._waiting)
        self._waiting.clear()
        return batch


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
        """End every stream; the clients reconnect with the last number they saw."""
        self.closing.set()
        for subscription in self._subscriptions:
            subscription.drop()

    @property
    def clients(self) -> int:
        """Number of open streams, excluding those of the service itself."""
        return sum(not subscription.inside for subscription in self._subscriptions)

    async def follow(
        self, *, after: int | None, run_id: str | None = None, quiet_s: float | None = None, inside: bool = False
    ) -> AsyncGenerator[list[StreamEvent]]:
        """Yields all events after number `after` (None: from now on) in batches, first from the log, then live.

        An empty batch means that nothing happened for `quiet_s`. A caller that acts in a workspace only gets the events of
        that workspace. `inside` marks streams of the service itself, which do not count as clients.
        """
        actor = current_actor()
        subscription = Subscription(run_id, inside, actor.workspace_id if actor else None)
        self._subscriptions.add(subscription)
        try:
            last = self._last if after is None else after
            while after is not None and not self.closing.is_set():
                past = await self.page(last, run_id)
                if past:
                    last = past[-1].number
                    yield past
                if len(past) < REPLAY_PAGE:
                    break
            while not self.closing.is_set():
                batch = await subscription.take(quiet_s)
                if subscription.dropped:
                    return
                fresh = [line for line in batch if line.number > last]
                last = fresh[-1].number if fresh else last
                if fresh or not batch:
                    yield fresh
        finally:
            self._subscriptions.discard(subscription)

    async def page(self, after: int, run_id: str | None) -> list[StreamEvent]:
        """The next page of the log after a number. Clients that catch up take turns, so that other readers need not wait."""

        def read(session: Session) -> list[StreamEvent]:
            return [StreamEvent.of(event) for event in event_queries.after(session, after, run_id=run_id, limit=REPLAY_PAGE)]

        def over(reading: asyncio.Task[list[StreamEvent]]) -> None:
            self._replays.release()
            if not reading.cancelled():
                reading.exception()  # a client that has left does not ask for it

        await self._replays.acquire()
        reading = asyncio.create_task(self._db.read(read))
        reading.add_done_callback(over)
        return await asyncio.shield(reading)  # the turn lasts as long as its thread, also if the client leaves

    async def _tail(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S[self._db.dialect]):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._catch_up()
            except DatabaseUnavailable as error:
                log.warning("live tail waits", action="live_wait", error=str(error))
                await asyncio.sleep(AGAIN_S)

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
