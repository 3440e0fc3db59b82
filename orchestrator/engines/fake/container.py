"""A container that exists only in memory: started by the fake engine, and passed to a test's behaviour."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.engines.engine import (
    LABEL_ATTEMPT,
    LABEL_INSTANCE_TYPE,
    LABEL_RUN,
    ContainerFacts,
    ContainerState,
    ContainerStats,
    LaunchRequest,
)

KILLED = 137
TERMINATED = 143
LOG_BYTES = 1024 * 1024


@dataclass(eq=False)
class FakeContainer:
    """The program inside is an async callable that gets this object; its return value is the exit code."""

    container_id: str
    name: str
    labels: dict[str, str]
    created_at: datetime
    request: LaunchRequest | None = None
    state: ContainerState = ContainerState.CREATED
    boot_line: bytes = field(default=b"", repr=False)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    oom_killed: bool = False
    detail: str | None = None
    machine: str | None = None
    placed_at: datetime | None = None
    image_missing: bool = False
    boot_line_lost: bool = False
    evicted: bool = False
    terminate: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by SIGTERM; a behaviour may wait for it and end cleanly."""
    cpu_s: float = 0.1
    memory_bytes: int = 32 * 1024 * 1024
    _log: bytearray = field(default_factory=bytearray, repr=False)
    _thawed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _task: asyncio.Task[None] | None = field(default=None, repr=False)
    _ended: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def write(self, text: bytes) -> None:
        """Write to standard output."""
        self._log += text
        del self._log[:-LOG_BYTES]

    def read_log(self, tail_bytes: int) -> bytes:
        return bytes(self._log[-tail_bytes:]) if tail_bytes > 0 else b""

    async def checkpoint(self) -> None:
        """Waits while the container is paused. A behaviour that should freeze like a real program calls it between steps."""
        await self._thawed.wait()

    def start(
        self, boot_line: bytes, behaviour: Behaviour, now: Callable[[], datetime], changed: Callable[[str], None]
    ) -> None:
        self.boot_line = boot_line
        self.state = ContainerState.RUNNING
        self.started_at = now()
        self._thawed.set()

        async def live() -> None:
            code = KILLED
            try:
                code = await behaviour(self)
            except asyncio.CancelledError:
                pass
            except Exception as error:
                self.write(f"{type(error).__name__}: {error}\n".encode())
                code = 1
            finally:
                self.end(code, now())
                changed(self.name)

        self._task = asyncio.create_task(live(), name=f"fake {self.name}")

    def end(self, exit_code: int, at: datetime, *, oom: bool = False) -> None:
        """Only the first end counts."""
        if self.state not in (ContainerState.RUNNING, ContainerState.PAUSED):
            return
        self.state, self.exit_code, self.finished_at, self.oom_killed = ContainerState.EXITED, exit_code, at, oom
        self._ended.set()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def wait(self, timeout_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), timeout_s)
        return self._ended.is_set()

    def pause(self, paused: bool) -> None:
        if paused and self.state is ContainerState.RUNNING:
            self.state = ContainerState.PAUSED
            self._thawed.clear()
        elif not paused and self.state is ContainerState.PAUSED:
            self.state = ContainerState.RUNNING
            self._thawed.set()

    def facts(self) -> ContainerFacts:
        attempt = self.labels.get(LABEL_ATTEMPT)
        return ContainerFacts(
            name=self.name,
            container_id=self.container_id,
            state=self.state,
            run_id=self.labels.get(LABEL_RUN),
            attempt=int(attempt) if attempt else None,
            instance_type=self.labels.get(LABEL_INSTANCE_TYPE),
            created_at=self.created_at,
            started_at=self.started_at,
            finished_at=self.finished_at,
            exit_code=self.exit_code,
            oom_killed=self.oom_killed,
            detail=self.detail,
            machine=self.machine,
            placed_at=self.placed_at,
            image_missing=self.image_missing,
            boot_line_lost=self.boot_line_lost,
            evicted=self.evicted,
        )

    def stats(self) -> ContainerStats | None:
        if self.state not in (ContainerState.RUNNING, ContainerState.PAUSED):
            return None
        limit = self.request.instance_type.memory_bytes if self.request else 0
        return ContainerStats(cpu_s=self.cpu_s, memory_bytes=self.memory_bytes, memory_limit_bytes=limit, pids=1)


Behaviour = Callable[[FakeContainer], Awaitable[int]]


async def until_terminated(container: FakeContainer) -> int:
    """Runs until it is ended: the behaviour of a runner that never claims."""
    await container.terminate.wait()
    await container.checkpoint()
    return TERMINATED
