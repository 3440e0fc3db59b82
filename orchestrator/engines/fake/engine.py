"""An in-memory engine with a switch for each failure, for tests (end-to-end ones too); implements `engines.engine`.

A behaviour runs "in the container": an async callable that gets the `FakeContainer` with its boot line. A switch in `faults`
can be changed at any time and stays until changed back. `pause`, `vanish`, `crash` and `occupy` do at once what an operator
or the kernel would do. Containers live as long as the event loop, not the engine's user: `close` leaves them running.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator.engines.engine import (
    ENDED,
    ContainerFacts,
    ContainerState,
    ContainerStats,
    EngineError,
    EngineInfo,
    EngineUnreachable,
    ImageMissing,
    LaunchRequest,
    Machine,
    NoRoom,
    Unguarded,
)
from orchestrator.engines.fake.container import KILLED, TERMINATED, Behaviour, FakeContainer, until_terminated
from orchestrator.engines.launch_rules import check_fits, check_ours, check_same_attempt, is_runner, labels_of


@dataclass
class Faults:
    """With all switches off, the engine always works."""

    unreachable: bool = False  #: no call is answered
    unreachable_calls: int = 0  #: this many further calls are not answered
    hang_s: float = 0.0  #: how long an unreachable engine keeps callers waiting
    launch_error: str | None = None  #: launch is refused with this message
    launch_delay_s: float = 0.0  #: how long launch takes
    launch_answer_lost: bool = False  #: the container runs, but launch ends in `EngineUnreachable`
    start_lost: bool = False  #: the container is created but never started, and launch ends in `EngineUnreachable`
    boot_line_lost: bool = False  #: the container waits for a boot line that never comes, as `start_lost` otherwise
    image_missing: bool = False  #: every image is missing
    exit_at_once: int | None = None  #: the program exits at once with this code
    out_of_memory: bool = False  #: the program is killed at once for its memory use
    never_claims: bool = False  #: the program runs and does nothing
    starts_paused: bool = False  #: the container is paused as soon as it runs
    vanishes: bool = False  #: the container is gone as soon as it is launched
    kill_lost: bool = False  #: stop and kill are accepted but have no effect
    remove_error: str | None = None  #: remove is refused with this message
    list_delay_s: float = 0.0  #: how long list takes
    watch_silent: bool = False  #: watch reports nothing
    watch_ends: bool = False  #: watch ends at once
    network_gone: str | None = None  #: check and prepare are refused with this message
    unguarded: str | None = None  #: runners would reach too much: check and prepare are refused with this message
    no_room: str | None = None  #: launch finds no room, with this message
    waits: str | None = None  #: a launched container waits for a machine, with these words, until `place`


class FakeEngine:
    name = "fake"

    def __init__(
        self,
        instance: str = "fake",
        *,
        owner: str | None = None,
        behaviour: Behaviour = until_terminated,
        faults: Faults | None = None,
        cpus: int = 8,
        memory_bytes: int = 16 << 30,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.instance = instance
        self.owner = owner
        self.behaviour = behaviour
        self.faults = faults or Faults()
        self.containers: dict[str, FakeContainer] = {}
        self.calls: list[tuple[str, str]] = []
        """Every call, answered or not, as (call, container name)."""
        self.most_live = 0
        """The largest number of containers that ran at once."""
        self.machines: tuple[Machine, ...] = ()
        """If it stands for a cluster."""
        self._cpus = cpus
        self._memory_bytes = memory_bytes
        self._now = now
        self._made = 0
        self._watchers: list[asyncio.Queue[str]] = []

    # -- actions of an operator or the kernel

    def occupy(self, name: str, labels: dict[str, str] | None = None) -> FakeContainer:
        """Somebody else's container takes the name."""
        container = self._make(name, labels or {})
        container.start(b"", until_terminated, self._now, self._changed)
        return container

    def pause(self, name: str, paused: bool = True) -> None:
        self.containers[name].pause(paused)
        self._changed(name)

    def vanish(self, name: str) -> None:
        """Somebody removes the container without a trace."""
        self.containers.pop(name).end(KILLED, self._now())
        self._changed(name)

    def crash(self, name: str, exit_code: int = 1, *, oom: bool = False) -> None:
        self.containers[name].end(KILLED if oom else exit_code, self._now(), oom=oom)
        self._changed(name)

    def place(self, name: str, machine: str = "machine-1") -> None:
        """The cluster finds a machine for a container that waits; it still has to start."""
        container = self.containers[name]
        container.machine, container.placed_at, container.detail = machine, self._now(), None
        self._changed(name)

    def begin(self, name: str) -> None:
        """A container that waits starts."""
        container = self.containers[name]
        assert container.request is not None
        container.start(container.request.boot_line, self._behaviour_now(), self._now, self._changed)
        self._changed(name)

    def evict(self, name: str, words: str, *, at_once: bool = True) -> None:
        """The cluster takes a container's place: it ends, or is about to."""
        container = self.containers[name]
        container.detail, container.evicted = words, True
        if at_once:
            container.end(TERMINATED, self._now())
        self._changed(name)

    async def end_all(self) -> None:
        """At the end of a test: kill and forget everything."""
        for name in [*self.containers]:
            self.vanish(name)
        await asyncio.sleep(0)

    # -- the engine

    async def prepare(self) -> None:
        await self._asked("prepare")
        if self.faults.network_gone:
            raise EngineError(self.faults.network_gone)
        if self.faults.unguarded:
            raise Unguarded(self.faults.unguarded)

    async def check(self) -> None:
        await self._asked("check")
        if self.faults.network_gone:
            raise EngineError(self.faults.network_gone)
        if self.faults.unguarded:
            raise Unguarded(self.faults.unguarded)

    async def teardown(self) -> None:
        """There is nothing to undo."""

    async def info(self) -> EngineInfo:
        await self._asked("info")
        return EngineInfo(
            name=self.name,
            version="0",
            cpus=self._cpus,
            memory_bytes=self._memory_bytes,
            isolation="Nothing runs: containers exist in memory only, for tests.",
            less_isolated=True,
            machines=self.machines,
        )

    async def launch(self, request: LaunchRequest) -> ContainerFacts:
        await self._asked("launch", request.name)
        faults = self.faults
        if faults.launch_delay_s:
            await asyncio.sleep(faults.launch_delay_s)
        check_fits(request.instance_type, self._cpus)
        if faults.image_missing:
            raise ImageMissing(f"Image {request.image} is not on this engine.")
        if faults.launch_error:
            raise EngineError(faults.launch_error)
        if faults.no_room:
            raise NoRoom(faults.no_room)
        container = self.containers.get(request.name)
        if container is None:
            container = self._make(request.name, labels_of(request, self.instance, self.owner), request)
        check_same_attempt(container.labels, request, self.instance, self.owner)
        if faults.start_lost:
            raise EngineUnreachable("The connection broke before the start.")
        if container.state is ContainerState.CREATED and faults.boot_line_lost:
            container.state, container.boot_line_lost = ContainerState.WAITING, True
            raise EngineUnreachable("The connection broke before the boot line was there.")
        if container.state is ContainerState.CREATED and faults.waits is not None:
            container.state, container.detail = ContainerState.WAITING, faults.waits
            self._changed(container.name)
        if container.state is ContainerState.CREATED:
            container.start(request.boot_line, self._behaviour_now(), self._now, self._changed)
            self._after_start(container)
        if faults.launch_answer_lost:
            raise EngineUnreachable("The answer was lost.")
        return container.facts()

    async def list(self) -> list[ContainerFacts]:
        await self._asked("list")
        if self.faults.list_delay_s:
            await asyncio.sleep(self.faults.list_delay_s)
        mine = (each for each in self.containers.values() if is_runner(each.labels, self.instance, self.owner))
        return [container.facts() for container in mine]

    async def inspect(self, name: str) -> ContainerFacts | None:
        await self._asked("inspect", name)
        container = self.containers.get(name)
        return container.facts() if container else None

    async def stop(self, name: str, *, grace_s: float) -> None:
        container = await self._ours("stop", name)
        if container is None or self.faults.kill_lost:
            return
        if container.state is ContainerState.WAITING:
            self.vanish(name)
            return
        container.terminate.set()
        if container.state is ContainerState.RUNNING:
            await container.wait(grace_s)
        container.end(KILLED, self._now())

    async def kill(self, name: str) -> None:
        container = await self._ours("kill", name)
        if container is not None and container.state is ContainerState.WAITING:
            self.vanish(name)
        elif container is not None and not self.faults.kill_lost:
            container.end(KILLED, self._now())
            self._changed(name)

    async def remove(self, name: str) -> None:
        container = await self._ours("remove", name)
        if self.faults.remove_error:
            raise EngineError(self.faults.remove_error)
        if container is not None and self.containers.get(name) is container:
            self.vanish(name)

    async def logs(self, name: str, *, tail_bytes: int) -> bytes:
        await self._asked("logs", name)
        container = self.containers.get(name)
        return container.read_log(tail_bytes) if container else b""

    async def stats(self, name: str) -> ContainerStats | None:
        await self._asked("stats", name)
        container = self.containers.get(name)
        return container.stats() if container else None

    async def watch(self) -> AsyncIterator[str]:
        if self.faults.watch_ends or self.faults.unreachable:
            return
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._watchers.append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.remove(queue)

    async def close(self) -> None:
        """The containers keep running, as with a real engine."""

    # -- inside

    async def _asked(self, call: str, name: str = "") -> None:
        self.calls.append((call, name))
        faults = self.faults
        if faults.unreachable or faults.unreachable_calls > 0:
            faults.unreachable_calls = max(0, faults.unreachable_calls - 1)
            await asyncio.sleep(faults.hang_s)
            raise EngineUnreachable("The fake engine does not answer.")
        await asyncio.sleep(0)

    async def _ours(self, call: str, name: str) -> FakeContainer | None:
        await self._asked(call, name)
        container = self.containers.get(name)
        if container is not None:
            check_ours(container.labels, name, self.instance, self.owner)
        return container

    def _make(self, name: str, labels: dict[str, str], request: LaunchRequest | None = None) -> FakeContainer:
        self._made += 1
        container = FakeContainer(f"{self._made:064x}", name, labels, self._now(), request)
        self.containers[name] = container
        self._changed(name)
        return container

    def _behaviour_now(self) -> Behaviour:
        if (code := self.faults.exit_at_once) is not None:
            return lambda _: asyncio.sleep(0, code)
        return until_terminated if self.faults.never_claims else self.behaviour

    def _after_start(self, container: FakeContainer) -> None:
        self.most_live = max(self.most_live, sum(c.state not in ENDED for c in self.containers.values()))
        if self.faults.out_of_memory:
            self.crash(container.name, oom=True)
        if self.faults.starts_paused:
            self.pause(container.name)
        if self.faults.vanishes:
            self.vanish(container.name)
        self._changed(container.name)

    def _changed(self, name: str) -> None:
        if not self.faults.watch_silent:
            for queue in self._watchers:
                with contextlib.suppress(asyncio.QueueFull):
                    queue.put_nowait(name)
