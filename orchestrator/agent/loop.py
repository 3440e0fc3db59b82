"""The agent's main loop: claims work, starts and watches containers, reports on them and cleans up."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
import structlog

from orchestrator.agent.link import Link, LinkLost, LinkRefused
from orchestrator.engines.engine import (
    ENDED,
    ContainerFacts,
    ContainerState,
    Engine,
    EngineError,
    EngineInfo,
    InstanceType,
    LaunchRequest,
    NoRoom,
)
from runner.contract.run_spec import CONTRACT_VERSION, BootConfig

log = structlog.get_logger()

T = TypeVar("T")

HEARTBEAT_S = 10.0
NO_ROOM_S = 2.0
LOG_TAIL_BYTES = 64 * 1024
LOG_TAILS_BYTES = 128 * 1024
"""For all log tails of one report: a byte may become six of JSON, and the service accepts 1 MiB."""
STOP_GRACE_S = 4.0
STOPPED = "It was stopped before it was started."
MEMORY_SHARE = 0.9
ALIVE = (ContainerState.WAITING, ContainerState.RUNNING, ContainerState.PAUSED)
SMALLEST_PER_CPU = 16
"""Default maximum per CPU, of the smallest type: high, so that CPUs and memory are the limit rather than this count."""


@dataclass(frozen=True)
class AgentOptions:
    agent_id: str
    name: str
    provider: str
    instance_types: tuple[str, ...]
    image: str
    max_at_once: int | None = None
    debug: bool = False
    heartbeat_s: float = HEARTBEAT_S
    stop_grace_s: float = STOP_GRACE_S


class AgentLoop:
    def __init__(self, engine: Engine, link: Link, options: AgentOptions, *, door_url: Callable[[], str]) -> None:
        self._engine = engine
        self._link = link
        self._options = options
        self._door_url = door_url
        self._refused: dict[str, str] = {}
        self._launching: set[str] = set()
        self._fetching: dict[str, asyncio.Task[None]] = {}
        """Launches that may be waiting for a user's image; nothing else waits for them."""
        self._no_room: set[str] = set()
        """Orders that the engine had no room for. They are given again until it has."""
        self._untouched: set[str] = set()
        """Names launching at any time since the last report began: a container listing may be outdated for them."""
        self._alive: set[str] = set()
        """Containers running at the last report; any that are missing since then were removed by somebody else."""
        self.kept: set[str] = set()
        self._changed = asyncio.Event()
        self.leaving = asyncio.Event()
        self._hold: str | None = None
        """Why nothing is claimed at present."""
        self._dismissed = False
        """The service has deleted our row, so it no longer accepts reports."""

    async def run(self) -> None:
        """Runs until told to leave and no container is left. Raises `LinkLost` and `LinkRefused`, and `EngineError` if
        the engine does not answer at the start; later it waits for the engine."""
        info = await self._engine.info()
        await self._guarded(self._report())
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._watch())
            reporting = tasks.create_task(self._reports())
            await self._claims(info, tasks)
            while self._fetching or (await self._guarded(self._living())) != []:  # noqa: ASYNC110 -- polls the engine
                await asyncio.sleep(0.5)
            watching.cancel()
            reporting.cancel()
            while (await self._guarded(self._left())) != []:
                await self._guarded(self._report())
                await asyncio.sleep(0.1)

    async def stop_all(self) -> None:
        """Stop all containers here and report their ends, as far as time allows."""
        for fetching in self._fetching.values():
            fetching.cancel()
        with contextlib.suppress(EngineError):
            for name in await self._living():
                await self._engine.stop(name, grace_s=self._options.stop_grace_s)
        with contextlib.suppress(EngineError, LinkLost, LinkRefused, TimeoutError):
            async with asyncio.timeout(10):
                await self._report()

    async def _claims(self, info: EngineInfo, tasks: asyncio.TaskGroup) -> None:
        while not self.leaving.is_set():
            if not await self._may_launch():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await self.leaving.wait()
                continue
            fetching = [*self._fetching]  # before listing: a launch that ends in between is in one of the two
            names = await self._guarded(self._names())
            if names is None:
                await asyncio.sleep(1)
                continue
            names += fetching
            asking = asyncio.create_task(self._link.post("/api/agents/claim", self._introduction(info, names)))
            leaving = asyncio.create_task(self.leaving.wait())
            try:
                await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    return
                answer = asking.result()
            finally:
                asking.cancel()
                leaving.cancel()
            if answer["action"] == "done":
                log.info("told to leave", action="agent_done", detail=answer.get("detail"))
                self._dismissed = True
                return
            if answer["action"] == "launch" and answer.get("guest"):
                self._fetch_and_launch(answer, tasks)
            elif answer["action"] == "launch":
                await self._launch(answer)

    async def _may_launch(self) -> bool:
        """Whether a launch could work, and runners would reach no more than they may."""
        hold = None
        try:
            await self._engine.check()
        except EngineError as error:
            hold = str(error)
        if hold != self._hold:
            log.warning("no work is claimed" if hold else "work is claimed again", action="agent_hold", why=hold)
        self._hold = hold
        return hold is None

    def _introduction(self, info: EngineInfo, names: list[str]) -> dict[str, Any]:
        options = self._options
        return {
            "agent_id": options.agent_id,
            "contract_version": CONTRACT_VERSION,
            "name": options.name,
            "provider": options.provider,
            "engine": self._engine.name,
            "instance_types": list(options.instance_types),
            "max_at_once": options.max_at_once or max(1, math.floor(info.cpus)) * SMALLEST_PER_CPU,
            "vcpu": float(info.cpus),
            "memory_bytes": int(info.memory_bytes * MEMORY_SHARE),
            "door_url": self._door_url(),
            "known": [*names, *self._refused],
        }

    def _fetch_and_launch(self, order: dict[str, Any], tasks: asyncio.TaskGroup) -> None:
        name = order["name"]

        def ended(task: asyncio.Task[None]) -> None:
            del self._fetching[name]
            if task.cancelled():
                self._refused[name] = STOPPED
                self._changed.set()

        self._fetching[name] = tasks.create_task(self._launch(order))
        self._fetching[name].add_done_callback(ended)

    async def _launch(self, order: dict[str, Any]) -> None:
        kind = order["instance_type"]
        line = BootConfig.model_validate(order["boot"]).model_dump_json().encode() + b"\n"
        request = LaunchRequest(
            name=order["name"],
            run_id=order["run_id"],
            attempt=order["attempt"],
            instance_type=InstanceType(kind["name"], kind["vcpu"], kind["memory_bytes"], kind["disk_bytes"]),
            image=self._options.image,
            boot_line=line,
            sandbox_slots=order["sandbox_slots"],
            guest=order.get("guest"),
        )
        log.info("launch", action="agent_launch", container=request.name, run_id=request.run_id)
        self._launching.add(request.name)
        self._untouched.add(request.name)
        try:
            await self._engine.launch(request)
            self._no_room.discard(request.name)
        except NoRoom as error:
            if request.name not in self._no_room:
                log.warning("no room yet", action="agent_no_room", container=request.name, error=str(error))
            self._no_room.add(request.name)
            self._changed.set()
            await asyncio.sleep(NO_ROOM_S)
        except EngineError as error:
            self._no_room.discard(request.name)
            log.warning("launch refused", action="agent_launch_refused", container=request.name, error=str(error))
            self._refused[request.name] = str(error)
            self._changed.set()
        finally:
            self._launching.discard(request.name)

    async def _reports(self) -> None:
        while True:
            self._changed.clear()
            await self._guarded(self._report())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.heartbeat_s):
                    await self._changed.wait()

    async def _report(self) -> None:
        """Report every container, stop those that must stop, remove those whose end was reported."""
        self._untouched = set(self._launching)
        facts = [fact for fact in await self._engine.list() if fact.name not in self.kept]
        ended = sum(fact.state in ENDED for fact in facts)
        tail_bytes = min(LOG_TAIL_BYTES, LOG_TAILS_BYTES // max(ended, 1))
        reports = [await self._container_report(fact, tail_bytes) for fact in facts]
        refused = dict(self._refused)
        names = {fact.name for fact in facts}
        reports += [{"name": name, "ended": True, "gone": True} for name in self._alive - names - self.kept]
        waiting = {*self._fetching, *self._no_room} - names
        reports += [{"name": name, "ended": False, "fetching": True} for name in waiting]
        reports += [
            {"name": name, "ended": True, "detail": why[:2000]} for name, why in refused.items() if name not in names
        ]
        try:
            answer = await self._link.post("/api/agents/report", {"agent_id": self._options.agent_id, "containers": reports})
        except LinkRefused as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise
            if not self._dismissed:  # the service does not know us yet; the next claim introduces us
                return
            answer = {"stop": []}
        self._alive = {fact.name for fact in facts if fact.state in ALIVE}
        for name in refused:
            self._refused.pop(name, None)
        for name in answer["stop"]:
            if (fetching := self._fetching.get(name)) is not None:
                fetching.cancel()
            if name in self._no_room:
                self._no_room.discard(name)
                self._refused[name] = STOPPED
                self._changed.set()
            await self._engine.stop(name, grace_s=self._options.stop_grace_s)
        for fact in facts:
            never_started = fact.state is ContainerState.CREATED and fact.name not in self._untouched
            if fact.state in ENDED or never_started:
                await self._clear_away(fact)

    async def _clear_away(self, fact: ContainerFacts) -> None:
        if self._options.debug and fact.exit_code != 0:
            self.kept.add(fact.name)
            log.warning("failed container kept", action="agent_kept", container=fact.name, exit_code=fact.exit_code)
            return
        await self._engine.remove(fact.name)

    async def _container_report(self, fact: ContainerFacts, tail_bytes: int) -> dict[str, Any]:
        ended = fact.state in ENDED
        report: dict[str, Any] = {"name": fact.name, "ended": ended, "container_id": fact.container_id}
        if fact.state is ContainerState.WAITING and fact.placed_at is None:
            report["fetching"] = True  # the time to report counts from when it got a machine
        if ended:
            tail = await self._engine.logs(fact.name, tail_bytes=tail_bytes)
            report |= {
                "exit_code": fact.exit_code,
                "oom_killed": fact.oom_killed,
                "log_tail": tail.decode("utf-8", "replace"),
            }
        return report

    async def _names(self) -> list[str]:
        return [fact.name for fact in await self._engine.list()]

    async def _living(self) -> list[str]:
        return [fact.name for fact in await self._engine.list() if fact.state not in ENDED]

    async def _left(self) -> list[str]:
        return [name for name in await self._names() if name not in self.kept]

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(EngineError):
                async for _ in self._engine.watch():
                    self._changed.set()
            await asyncio.sleep(2)

    async def _guarded(self, work: Awaitable[T]) -> T | None:
        """An engine that does not answer proves nothing: return None and ask again in the next round."""
        try:
            return await work
        except EngineError as error:
            log.warning("engine trouble", action="agent_engine", error=str(error))
            return None
