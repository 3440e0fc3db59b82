"""The main loop of the orchestrator: hold the lease, check the engine, reconcile, dispatch, repeat.

One task runs these steps in a fixed order, so that no two of them act on the same row at once. A new run, an event of the
engine, or its own interval wakes it. No error ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from orchestrator.db.session import DatabaseUnavailable
from orchestrator.engines.engine import Engine, EngineError, EngineUnreachable
from orchestrator.runs.scheduling.dispatcher import Dispatcher
from orchestrator.runs.scheduling.fleet import Fleet
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.runs.scheduling.reconciler import Reconciler
from orchestrator.runs.warm_pool.pool import Pool
from orchestrator.system.clock import Clock

log = structlog.get_logger()

TIDY_S = 600.0


class Signals:
    """How other parts of the service wake the loops."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.looking = asyncio.Event()

    def wake(self) -> None:
        """Dispatch now: there may be something to start."""
        self.woken.set()

    def look(self) -> None:
        """Reconcile now: the engine or a run has changed."""
        self.looking.set()
        self.woken.set()


class Door(Protocol):
    async def ensure(self) -> None:
        """Open the listener for runners if it is not open."""


class Loops:
    def __init__(
        self,
        *,
        clock: Clock,
        engine: Engine,
        fleet: Fleet,
        leadership: Leadership,
        reconciler: Reconciler,
        dispatcher: Dispatcher,
        pool: Pool,
        door: Door,
        signals: Signals,
        interval_s: float,
        tidy: Callable[[], Awaitable[None]],
    ) -> None:
        self._clock = clock
        self._engine = engine
        self._fleet = fleet
        self._leadership = leadership
        self._reconciler = reconciler
        self._dispatcher = dispatcher
        self._pool = pool
        self._door = door
        self._signals = signals
        self._interval_s = interval_s
        self._tidy = tidy
        self._tasks: list[asyncio.Task[None]] = []
        self._last_tidy = clock.monotonic()
        self.last_tick = clock.monotonic()
        self.last_error: str | None = None

    @property
    def leads(self) -> bool:
        return self._leadership.epoch is not None

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._rounds()), asyncio.create_task(self._watch())]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._dispatcher.close()
        await self._pool.close()
        with contextlib.suppress(DatabaseUnavailable):
            await self._leadership.release()

    async def _rounds(self) -> None:
        next_look = 0.0
        while True:
            self._signals.woken.clear()
            due = self._signals.looking.is_set() or self._clock.monotonic() >= next_look
            if due:
                self._signals.looking.clear()
                next_look = self._clock.monotonic() + self._interval_s
            await self._guarded(self._round(reconcile=due))
            with contextlib.suppress(TimeoutError):
                # At most half a second, so that the end of a backoff is noticed without an event.
                async with asyncio.timeout(min(0.5, self._interval_s)):
                    await self._signals.woken.wait()

    async def _round(self, *, reconcile: bool) -> None:
        if reconcile:
            leads = await self._leadership.hold()
            await self._fleet.refresh()
            if self._fleet.error is None:
                if self._fleet.network_error is None:
                    await self._door.ensure()  # runners may call any orchestrator, not only the leader
                if leads:
                    await self._reconciler.round()
            if leads and self._clock.monotonic() - self._last_tidy > TIDY_S:
                self._last_tidy = self._clock.monotonic()
                await self._tidy()
        if self._leadership.epoch is not None:
            taken = await self._dispatcher.round()
            if not taken:  # starting a container would slow down the runs just started; the next round is soon
                await self._pool.fill(held=self._fleet.hold() is not None)
        self.last_tick = self._clock.monotonic()

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
            self.last_error = None
        except EngineUnreachable as error:
            self._fleet.error = str(error)
            self.last_error = str(error)
            log.warning("engine unreachable", action="engine_unreachable", error=str(error))
        except (DatabaseUnavailable, LeadershipLost, EngineError) as error:
            self.last_error = str(error)
            log.warning("round given up", action="round_failed", error=str(error))
            await asyncio.sleep(0.5)
        except Exception as error:
            self.last_error = repr(error)
            log.exception("round failed", action="round_crashed")
            await asyncio.sleep(1)

    async def _watch(self) -> None:
        """Wake the loop on events of the engine. They are only a hint; polling is what counts."""
        while True:
            try:
                async for _ in self._engine.watch():
                    self._signals.look()
            except EngineError as error:
                log.debug("watch ended", action="watch_ended", error=str(error))
            except Exception:
                log.exception("watch failed", action="watch_failed")
            await asyncio.sleep(self._interval_s)
