"""Runs containers through Docker; obeys `engine`.

Calls of the SDK (`docker_api`) run in a bounded number of threads, each with a limit. What is asked of Docker is decided in
`docker_options`, how its answers are read in `docker_facts`.

The boot line goes to the container's standard input, on a connection that is attached before the start. If this process
dies between start and delivery, the container waits for a line that never comes: the token is only in memory, so the same
attempt is never launched again, and the reconciler kills it at its start deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from orchestrator.engines.bounded_threads import BoundedThreads, Deadline, GivenUp, stream_from_thread
from orchestrator.engines.docker_api import Conflict, DockerApi, NotThere
from orchestrator.engines.docker_facts import isolation_sentence, labels_in, read_container, read_stats
from orchestrator.engines.docker_kit import prepare_guest, remove_kits
from orchestrator.engines.docker_network import RunnerNetwork, is_replaceable, is_usable, read_network, refusal
from orchestrator.engines.docker_options import DockerEngineConfig, create_options, network_options
from orchestrator.engines.docker_pull import GuestPulls
from orchestrator.engines.engine import (
    LABEL_INSTANCE,
    LABEL_RUN,
    ContainerFacts,
    ContainerState,
    ContainerStats,
    EngineError,
    EngineInfo,
    EngineUnreachable,
    ImageMissing,
    LaunchRequest,
)
from orchestrator.engines.guest_images import Guest, check_allowed, own_image_missing
from orchestrator.engines.host_guard import HostGuard, lift
from orchestrator.engines.launch_rules import check_fits, check_ours, check_same_attempt

T = TypeVar("T")

THREADS = 16


class DockerEngine:
    """One Docker engine. `list` shows runners only: an orchestrator's own container carries no run label."""

    name = "docker"

    def __init__(self, config: DockerEngineConfig) -> None:
        self.config = config
        self._api = DockerApi(config.base_url, connections=THREADS + 2, limit_s=config.socket_limit_s)
        self._threads = BoundedThreads(THREADS, "docker")
        self._pulls = GuestPulls(self._api, self._threads)
        self._network: RunnerNetwork | None = None
        self._cpus = 0
        self._guarded = False
        self._kit_made = False
        self._preparing = threading.Lock()
        self._launching: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def prepare(self) -> None:
        await self._call(self._prepare)

    async def listen_address(self) -> str:
        """Host mode: the address of this machine that the orchestrator must listen on for its runners."""
        await self.prepare()
        gateway = self._network.gateway if self._network else None
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
        """Remove the firewall rules and the runner network, unless something is still on it. Idempotent."""
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
        )

    async def launch(self, request: LaunchRequest) -> ContainerFacts:
        lock = self._launching.setdefault(request.name, asyncio.Lock())  # there as long as somebody holds or awaits it
        async with lock:
            if self.config.pull:
                await self._pulls.have(request.image)
            if request.guest is not None:
                check_allowed(request.guest, request.image, self.config.guest_images)
                if self.config.guest_pull and request.guest != request.image:
                    await self._pulls.have(request.guest)
            return await self._call(lambda deadline: self._launch(request, deadline))

    async def list(self) -> list[ContainerFacts]:
        wanted = [f"{LABEL_INSTANCE}={self.config.instance}", LABEL_RUN]

        def read(deadline: Deadline) -> tuple[ContainerFacts, ...]:
            found = []
            for container in self._api.ids(wanted):
                deadline.check()
                if (described := self._api.inspect(container)) is not None:
                    found.append(read_container(described))
            return tuple(found)

        return [*await self._call(read)]

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
                await self._call(lambda _: remove_kits(self._api, self.config.instance))
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
        """Act on a container of ours, by its id, so that it cannot hit another one that took the name meanwhile."""

        def step(_: Deadline) -> None:
            described = self._api.inspect(name)
            if described is None:
                return
            check_ours(labels_in(described), name, self.config.instance)
            act(described["Id"])

        await self._call(step, more_s)

    # -- in the threads

    def _prepare(self, deadline: Deadline) -> RunnerNetwork:
        with self._preparing:
            deadline.check()
            network = self._make_network()
            deadline.check()
            guard = self._guard(network)
            self._guarded = guard is not None and guard.put()
            self._cpus = self._cpus or self._api.info()["NCPU"]
            self._network = network
            return network

    def _make_network(self) -> RunnerNetwork:
        config = self.config
        described = self._api.find_network(config.network)
        if described and not is_usable(described, config):
            if not is_replaceable(described, config):
                raise refusal(config)
            self._remove_network(described)
            described = None
        if described is None:
            self._api.create_network(network_options(config))
            described = self._api.find_network(config.network)
        if described is None:
            raise EngineError(f"Docker network {config.network} was removed while it was being made.")
        return read_network(described)

    def _teardown(self, _: Deadline) -> None:
        remove_kits(self._api, self.config.instance)
        described = self._api.find_network(self.config.network)
        if described is None or not is_replaceable(described, self.config):
            return
        self._remove_network(described)
        self._network, self._guarded = None, False

    def _remove_network(self, described: dict[str, Any]) -> None:
        self._api.remove_network(described["Id"])
        if self.config.host_mode:
            lift(read_network(described).bridge)

    def _guard(self, network: RunnerNetwork) -> HostGuard | None:
        port = self.config.runner_port
        if network.gateway is None or port is None or not self.config.host_mode:
            return None
        return HostGuard(bridge=network.bridge, gateway=network.gateway, port=port)

    def _reach(self) -> str:
        if not self.config.host_mode:
            return "runners reach the orchestrator's container, and each other's addresses, where nothing listens"
        if self._guarded:
            return "runners reach one port of the orchestrator and nothing else"
        return "runners also reach services of this machine that listen on all addresses, for want of a firewall rule"

    def _launch(self, request: LaunchRequest, deadline: Deadline) -> ContainerFacts:
        network = self._network or self._prepare(deadline)
        check_fits(request.instance_type, self._cpus)
        try:
            guest, container = self._make(request, network, deadline)
        except NotThere:  # another orchestrator of this instance closed, and its kit went with it
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
                self._network = None  # the network is gone: made anew next time
            with contextlib.suppress(EngineError):
                self._api.remove(container)
            raise

    def _make(self, request: LaunchRequest, network: RunnerNetwork, deadline: Deadline) -> tuple[Guest | None, str]:
        guest = None
        if request.guest is not None:
            self._kit_made = True
            guest = prepare_guest(self._api, request, self.config, deadline)
        return guest, self._create(create_options(request, self.config, network.gateway, guest))

    def _create(self, options: dict[str, Any]) -> str:
        try:
            return self._api.create(options)
        except ImageMissing as error:
            raise ImageMissing(own_image_missing(str(options["image"]))) from error

    def _adopt(self, request: LaunchRequest) -> ContainerFacts:
        described = self._api.inspect(request.name)
        if described is None:
            raise EngineError(f"Container {request.name} was removed while it was being launched.")
        check_same_attempt(labels_in(described), request, self.config.instance)
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
