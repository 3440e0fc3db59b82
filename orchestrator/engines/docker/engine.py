"""Runs containers through Docker; implements `engines.engine`.

SDK calls (`api`) run in a bounded number of threads, each with a time limit. `options` decides what is asked of Docker,
`facts` interprets its answers.

The boot line goes to the container's standard input, on a connection attached before the start. If this process dies between
start and delivery, the container waits for a line that never comes: the token was only in memory, so the attempt is never
launched again, and the reconciler kills it at its start deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import structlog

from orchestrator.engines.bounded_threads import BoundedThreads, Deadline, GivenUp, stream_from_thread
from orchestrator.engines.docker.api import Conflict, DockerApi, NotThere
from orchestrator.engines.docker.facts import isolation_sentence, labels_in, read_container, read_host, read_stats
from orchestrator.engines.docker.guest_images import PRESETS, Guest, check_allowed, own_image_missing
from orchestrator.engines.docker.kit import prepare_guest, remove_kits
from orchestrator.engines.docker.network import RunnerNetwork
from orchestrator.engines.docker.network_upkeep import NetworkUpkeep
from orchestrator.engines.docker.options import MIB, DockerEngineConfig, create_options, quota_options
from orchestrator.engines.docker.pull import GuestPulls
from orchestrator.engines.engine import (
    LABEL_INSTANCE,
    LABEL_RUN,
    ContainerFacts,
    ContainerState,
    ContainerStats,
    DiskLimit,
    EngineError,
    EngineInfo,
    EngineUnreachable,
    ImageMissing,
    LaunchRequest,
)
from orchestrator.engines.launch_rules import check_fits, check_ours, check_same_attempt, is_ours

T = TypeVar("T")
log = structlog.get_logger()

THREADS = 16


class DockerEngine:
    """One Docker engine. `list` returns runners only: an orchestrator's own container has no run label."""

    name = "docker"

    def __init__(self, config: DockerEngineConfig) -> None:
        self.config = config
        self._api = DockerApi(config.base_url, connections=THREADS + 2, limit_s=config.socket_limit_s)
        self._threads = BoundedThreads(THREADS, "docker")
        self._pulls = GuestPulls(self._api, self._threads)
        self.network = NetworkUpkeep(self._api, config)
        self._cpus = 0
        self._kit_made = False
        self._disk: DiskLimit | None = None
        self.strangers: tuple[str, ...] = ()
        """Containers with our instance's name that belong to another installation, as of the last `list`."""
        self._launching: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def prepare(self) -> None:
        await self._call(self._prepare)

    async def check(self) -> None:
        await self._call(lambda _: self.network.check())

    async def listen_address(self) -> str:
        """In host mode, the address of this machine on which the orchestrator must listen for its runners."""
        if self.network.current is None:
            await self.prepare()
        gateway = self.network.current.gateway if self.network.current else None
        if gateway is None or not self.config.host_mode:
            raise EngineError("Only an orchestrator on the host listens on the runner network's own address.")
        try:
            with socket.socket() as probe:
                probe.bind((gateway, 0))
        except OSError as error:
            raise EngineError(
                f"The runner network's address {gateway} is not on this machine (Docker Desktop, rootless Docker, a remote "
                "engine): run the orchestrator in a container, with docker compose up."
            ) from error
        return gateway

    async def teardown(self) -> None:
        """Remove the firewall rules and the runner network, unless containers are still on it. Idempotent."""
        await self._call(self._teardown)

    async def info(self) -> EngineInfo:
        described = await self._call(lambda _: self._api.info())
        self._cpus = described["NCPU"]
        return EngineInfo(
            name=self.name,
            version=described["ServerVersion"],
            cpus=described["NCPU"],
            memory_bytes=described["MemTotal"],
            isolation=isolation_sentence(described, self._reach()),
            disk_limit=self._disk or DiskLimit.MEMORY,
            folder=self._folder(described),
        )

    async def launch(self, request: LaunchRequest) -> ContainerFacts:
        lock = self._launching.setdefault(request.name, asyncio.Lock())  # exists while somebody holds or awaits it
        async with lock:
            if self.config.pull:
                await self._pulls.have(request.image)
            if request.guest is not None:
                check_allowed(request.guest, request.image, self.config.guest_images)
                if self.config.guest_pull and request.guest != request.image and request.guest not in PRESETS:
                    await self._pulls.have(request.guest)
            return await self._call(lambda deadline: self._launch(request, deadline))

    async def list(self) -> list[ContainerFacts]:
        wanted = [f"{LABEL_INSTANCE}={self.config.instance}", LABEL_RUN]

        def read(deadline: Deadline) -> tuple[tuple[ContainerFacts, ...], tuple[str, ...]]:
            found, strangers = [], []
            for container in self._api.ids(wanted):
                deadline.check()
                if (described := self._api.inspect(container)) is None:
                    continue
                facts = read_container(described)
                if is_ours(labels_in(described), self.config.instance, self.config.owner):
                    found.append(facts)
                else:
                    strangers.append(facts.name)
            return tuple(found), tuple(sorted(strangers))

        found, strangers = await self._call(read)
        if strangers and not self.strangers:
            log.warning(
                "containers of another installation with the name of this instance are left alone",
                action="strangers",
                instance=self.config.instance,
                containers=strangers,
            )
        self.strangers = strangers
        return [*found]

    async def inspect(self, name: str) -> ContainerFacts | None:
        described = await self._call(lambda _: self._api.inspect(name))
        return read_container(described) if described else None

    async def stop(self, name: str, *, grace_s: float) -> None:
        grace = math.ceil(grace_s)
        await self._on_ours(name, lambda container: self._api.stop(container, grace), more_s=grace_s)

    async def kill(self, name: str) -> None:
        await self._on_ours(name, self._api.kill)

    async def remove(self, name: str) -> None:
        await self._on_ours(name, self._api.remove)

    async def logs(self, name: str, *, tail_bytes: int) -> bytes:
        text = await self._call(lambda _: self._api.logs(name))
        return text[-tail_bytes:] if tail_bytes > 0 else b""

    async def stats(self, name: str) -> ContainerStats | None:
        return read_stats(await self._call(lambda _: self._api.stats(name)))

    def watch(self) -> AsyncIterator[str]:
        streams: list[Any] = []
        label = f"{LABEL_INSTANCE}={self.config.instance}"
        return stream_from_thread(
            lambda: self._api.events(label, streams), lambda: self._api.close_streams(streams), quiet=(EngineError,)
        )

    async def close(self) -> None:
        if self._kit_made:
            with contextlib.suppress(EngineError):
                await self._call(lambda _: remove_kits(self._api, self.config))
        self._pulls.close()
        self._threads.close()
        self._api.close()

    async def _call(self, function: Callable[[Deadline], T], more_s: float = 0) -> T:
        limit_s = self.config.call_limit_s + more_s
        try:
            return await self._threads.call(function, limit_s=limit_s)
        except TimeoutError as error:
            raise EngineUnreachable(f"Docker at {self._api.address} did not answer within {limit_s:g} s.") from error

    async def _on_ours(self, name: str, act: Callable[[str], None], more_s: float = 0) -> None:
        """Act on a container of ours by id, so that another one that has taken the name since cannot be hit."""

        def step(_: Deadline) -> None:
            described = self._api.inspect(name)
            if described is None:
                return
            check_ours(labels_in(described), name, self.config.instance, self.config.owner)
            act(described["Id"])

        await self._call(step, more_s)

    # -- run in the threads

    def _prepare(self, deadline: Deadline) -> RunnerNetwork:
        network = self.network.ensure(deadline)
        self._cpus = self._cpus or self._api.info()["NCPU"]
        if self._disk is None:
            self._disk = DiskLimit.QUOTA if self._api.can_limit_volumes(quota_options(MIB)) else DiskLimit.MEMORY
        return network

    def _teardown(self, _: Deadline) -> None:
        remove_kits(self._api, self.config)
        self.network.remove()

    def _folder(self, described: dict[str, Any]) -> Path | None:
        """Only if the engine is certainly on this machine: inside a container, the same path is a different place."""
        if not self.config.host_mode or not read_host(described).is_this_machine:
            return None
        folder = Path(str(described.get("DockerRootDir") or "/"))
        try:
            return folder if folder.is_dir() and folder != Path("/") else None
        except OSError:
            return None

    def _reach(self) -> str:
        if not self.config.host_mode:
            return "runners reach the orchestrator's container, and each other's addresses, where nothing listens"
        if self.network.guarded:
            return "runners reach one port of the orchestrator and nothing else"
        return "runners also reach services of this machine that listen on all addresses, for want of a firewall rule"

    def _launch(self, request: LaunchRequest, deadline: Deadline) -> ContainerFacts:
        known = self.network.current
        try:
            return self._launch_on(known or self._prepare(deadline), request, deadline)
        except NotThere:
            if known is None:
                raise
        self.network.forget()  # removed since the last look; recreated once
        return self._launch_on(self._prepare(deadline), request, deadline)

    def _launch_on(self, network: RunnerNetwork, request: LaunchRequest, deadline: Deadline) -> ContainerFacts:
        check_fits(request.instance_type, self._cpus)
        try:
            guest, container = self._make(request, network, deadline)
        except NotThere:  # another orchestrator of this instance closed and removed its kit
            guest, container = self._make(request, network, deadline)
        except Conflict:
            return self._adopt(request)
        try:
            deadline.check()
            if guest is not None and self.config.guest_network:
                self._api.connect_network(self.config.guest_network, container)
            self._api.start(container, request.boot_line)
            deadline.check()
            return self._facts(container)
        except (EngineError, GivenUp) as error:
            if isinstance(error, NotThere):
                self.network.forget()
            with contextlib.suppress(EngineError):
                self._api.remove(container)
            raise

    def _make(self, request: LaunchRequest, network: RunnerNetwork, deadline: Deadline) -> tuple[Guest | None, str]:
        guest = None
        if request.guest is not None:
            self._kit_made = True
            guest = prepare_guest(self._api, request, self.config, deadline)
        return guest, self._create(
            create_options(request, self.config, network.gateway, guest, network.name, self._disk or DiskLimit.MEMORY)
        )

    def _create(self, options: dict[str, Any]) -> str:
        try:
            return self._api.create(options)
        except ImageMissing as error:
            raise ImageMissing(own_image_missing(str(options["image"]))) from error

    def _adopt(self, request: LaunchRequest) -> ContainerFacts:
        described = self._api.inspect(request.name)
        if described is None:
            raise EngineError(f"Container {request.name} was removed while it was being launched.")
        check_same_attempt(labels_in(described), request, self.config.instance, self.config.owner)
        facts = read_container(described)
        if facts.state is not ContainerState.CREATED:
            return facts
        self._api.start(facts.container_id, request.boot_line)
        return self._facts(facts.container_id)

    def _facts(self, container: str) -> ContainerFacts:
        described = self._api.inspect(container)
        if described is None:
            raise EngineError(f"Container {container[:12]} was removed while it was being launched.")
        return read_container(described)
