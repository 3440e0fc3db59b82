"""An orchestrator that dies at a chosen moment, and an engine that notices two containers of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Connection
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.engines.engine import ENDED, ContainerFacts, LaunchRequest
from orchestrator.engines.fake.engine import FakeEngine
from tests.manual_clock import ManualClock


class Crash(BaseException):
    """The orchestrator is dead."""


class CrashAt:
    """Dies at the k-th step, before or after it is carried out; dead, it does nothing any more."""

    def __init__(self, k: int | None = None, *, after: bool = False) -> None:
        self.k = k
        self.after = after
        self.steps = 0
        self.dead = False

    async def step(self, work: Callable[[], Awaitable[Any]]) -> Any:
        self._check()
        self.steps += 1
        mine = self.steps == self.k
        if mine and not self.after:
            self.dead = True
        self._check()
        result = await work()
        if mine:
            self.dead = True
        self._check()
        return result

    def _check(self) -> None:
        if self.dead:
            raise Crash


class MortalDatabase:
    def __init__(self, db: Database, crash: CrashAt) -> None:
        self._db, self._crash = db, crash

    async def write(self, fn: Callable[[Session], Any]) -> Any:
        return await self._crash.step(lambda: self._db.write(fn))

    async def write_plain(self, fn: Callable[[Connection], Any]) -> Any:
        return await self._crash.step(lambda: self._db.write_plain(fn))

    async def read(self, fn: Callable[[Session], Any]) -> Any:
        self._crash._check()
        return await self._db.read(fn)


class MortalEngine:
    def __init__(self, engine: FakeEngine, crash: CrashAt) -> None:
        self._engine, self._crash = engine, crash
        self.name = engine.name

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._engine, name)

        async def mortal(*arguments: Any, **named: Any) -> Any:
            return await self._crash.step(lambda: call(*arguments, **named))

        return mortal


class WatchedEngine(FakeEngine):
    """Remembers whether a run ever had two live containers."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(now=clock.now)
        self.doubles: list[str] = []
        self.launched: list[str] = []

    async def launch(self, request: LaunchRequest) -> ContainerFacts:
        facts = await super().launch(request)
        self.launched.append(request.name)
        live = Counter(c.facts().run_id for c in self.containers.values() if c.state not in ENDED)
        self.doubles += [run_id for run_id, count in live.items() if run_id and count > 1]
        return facts
