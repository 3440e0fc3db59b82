"""Live events: one tail of the event log feeds every server-sent stream. Numbers are the database's, so a client that
comes back with the last one it saw misses nothing, across restarts too. A client that does not keep up is dropped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog

from orchestrator.db import event_queries
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.db.tables import Event

log = structlog.get_logger()

QUEUE_LIMIT = 2000
POLL_S = 1.0
"""Only for what other orchestrators wrote; our own commits wake the tail at once."""


class Subscription:
    """One client's queue."""

    def __init__(self, run_id: str | None, inside: bool = False) -> None:
        self.run_id = run_id
        self.inside = inside
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue(QUEUE_LIMIT)

    def offer(self, event: Event) -> bool:
        if self.run_id is not None and event.run_id != self.run_id:
            return True
        try:
            self.queue.put_nowait(event)
        except asyncio.QueueFull:
            return False
        return True


class Live:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._subscriptions: set[Subscription] = set()
        self._last = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
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
            self._drop(subscription)

    @property
    def clients(self) -> int:
        """Open streams, without those of the service itself."""
        return sum(not subscription.inside for subscription in self._subscriptions)

    async def events(self, *, after: int | None, run_id: str | None = None, inside: bool = False) -> AsyncIterator[Event]:
        """Everything after number `after` (None: from now on), first from the log, then as it happens.

        `inside` is for parts of the service itself: they are no clients.
        """
        subscription = Subscription(run_id, inside)
        self._subscriptions.add(subscription)
        try:
            seen = self._last if after is None else after
            while after is not None and not self.closing.is_set():
                start = seen
                page = await self._db.read(lambda s, n=start: event_queries.after(s, n, run_id=run_id))  # type: ignore[misc]
                for event in page:
                    yield event
                    seen = event.id or seen
                if len(page) < 500:
                    break
            while not self.closing.is_set():
                live = await subscription.queue.get()
                if live is None:
                    return
                if (live.id or 0) > seen:
                    seen = live.id or seen
                    yield live
        finally:
            self._subscriptions.discard(subscription)

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
            events = await self._db.read(lambda s: event_queries.after(s, number))  # noqa: B023
            for event in events:
                self._last = event.id or self._last
                for subscription in list(self._subscriptions):
                    if not subscription.offer(event):
                        self._subscriptions.discard(subscription)
                        self._drop(subscription)
            if len(events) < 500:
                return

    @staticmethod
    def _drop(subscription: Subscription) -> None:
        queue = subscription.queue
        while queue.full():
            queue.get_nowait()
        queue.put_nowait(None)
