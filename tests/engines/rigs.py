"""One engine of each kind, made ready for the conformance suite, with what a test does behind the engine's back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.options import DockerEngineConfig, create_options
from orchestrator.engines.engine import ContainerFacts, ContainerState, Engine, InstanceType, LaunchRequest
from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.engines.launch_rules import labels_of
from orchestrator.engines.process.directory import ProcessBox
from orchestrator.engines.process.engine import ProcessEngine, ProcessEngineConfig

PROGRAM = Path(__file__).with_name("probe_program.py").read_text(encoding="utf-8")
SMALL = InstanceType("small", 0.5, 96 << 20, 1 << 30)
TOKEN = "tok-5a1e57c0ffee"


def order(do: str, **more: Any) -> bytes:
    return json.dumps({"do": do, "token": TOKEN, **more}).encode()


@dataclass(frozen=True)
class Abilities:
    """In what engines may differ; `engine` says how far."""

    pauses: bool = True
    counts: bool = True
    """`stats` has counters."""
    unstarted: ContainerState = ContainerState.CREATED
    """What a container is that was created and not started."""
    killed: frozenset[int] = frozenset({137})
    """The exit codes of a program that listens to SIGTERM, when it is killed."""
    isolated: bool = False


class Rig(Protocol):
    kind: str
    engine: Engine
    image: str
    abilities: Abilities

    def sibling(self, instance: str) -> Engine:
        """An engine of another instance on the same machine."""

    def namesake(self, owner: str) -> Engine:
        """An engine of another installation that has the same instance name, as a restored backup has."""

    def restarted(self) -> Engine:
        """What a new process of the same orchestrator would have."""

    async def pause(self, name: str) -> None:
        """Only asked of a rig whose engine can."""

    async def create_only(self, request: LaunchRequest) -> None:
        """What a crash between create and start leaves behind; of a version that wrote no owner on it."""

    async def vanish(self, name: str) -> None: ...


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise AssertionError(f"docker {' '.join(arguments)}: {done.stderr}")
    return done.stdout.strip()


PATIENT = {"call_limit_s": 300.0, "socket_limit_s": 290.0}
"""Limits of a Docker engine on a machine that may be busy."""


@dataclass
class DockerRig:
    config: DockerEngineConfig
    image: str
    kind: str = "docker"
    abilities: Abilities = Abilities(isolated=True)
    opened: list[DockerEngine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = self._open(self.config.instance)

    def _open(self, instance: str, owner: str | None = None) -> DockerEngine:
        values = {**self.config.__dict__, "instance": instance, "owner": owner or self.config.owner}
        self.opened.append(DockerEngine(DockerEngineConfig(**values)))
        return self.opened[-1]

    def sibling(self, instance: str) -> Engine:
        return self._open(f"{self.config.instance}-{instance}")

    def namesake(self, owner: str) -> Engine:
        return self._open(self.config.instance, owner)

    def restarted(self) -> Engine:
        return self._open(self.config.instance)

    async def pause(self, name: str) -> None:
        await asyncio.to_thread(docker, "pause", name)

    async def create_only(self, request: LaunchRequest) -> None:
        await self.engine.prepare()
        options = create_options(request, replace(self.config, owner=None), "203.0.113.9")
        await asyncio.to_thread(self.engine._api.create, options)

    async def vanish(self, name: str) -> None:
        await asyncio.to_thread(docker, "rm", "--force", name)

    async def close(self) -> None:
        for engine in self.opened:
            for facts in await engine.list():
                await engine.remove(facts.name)
            if (engine.config.instance, engine.config.owner) != (self.config.instance, self.config.owner):
                await engine.teardown()
            await engine.close()


@dataclass
class ProcessRig:
    root: Path
    kind: str = "process"
    image: str = "none"
    abilities: Abilities = Abilities()
    opened: list[ProcessEngine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = self._open("test")

    def _open(self, instance: str, owner: str = "we") -> ProcessEngine:
        command = (sys.executable, "-I", "-c", PROGRAM)
        config = ProcessEngineConfig(
            instance=instance, root=self.root, command=command, owner=owner, call_limit_s=300, start_limit_s=200
        )
        self.opened.append(ProcessEngine(config))
        return self.opened[-1]

    def sibling(self, instance: str) -> Engine:
        return self._open(instance)

    def namesake(self, owner: str) -> Engine:
        return self._open("test", owner)

    def restarted(self) -> Engine:
        return self._open("test")

    def child(self, name: str) -> int:
        return int(json.loads((self.root / name / "running.json").read_text())["child"])

    async def pause(self, name: str) -> None:
        os.kill(self.child(name), signal.SIGSTOP)

    async def create_only(self, request: LaunchRequest) -> None:
        path = self.root / request.name
        self.root.mkdir(parents=True, exist_ok=True)
        command = (sys.executable, "-I", "-c", PROGRAM)
        meta = {"id": "1", "labels": labels_of(request, "test"), "created_at": time.time(), "memory_bytes": 1 << 30}
        job = {"command": command, "work": str(path / "work"), "environment": {}, "memory_bytes": 1 << 30, "limits": {}}
        assert ProcessBox.make(path, meta, job)

    async def vanish(self, name: str) -> None:
        ProcessBox(self.root / name).signal(signal.SIGKILL)
        ProcessBox(self.root / name).remove()

    async def close(self) -> None:
        for engine in self.opened:
            for facts in await engine.list():
                await engine.remove(facts.name)
            await engine.close()


async def acts(container: FakeContainer) -> int:
    """The same program for the fake engine."""
    wanted = json.loads(container.boot_line)
    container.write(f"ready {wanted.get('say', '')} 0\n".encode())
    if wanted["do"] == "exit":
        return int(wanted["code"])
    if wanted["do"] == "flood":
        container.write((b"x" * 999 + b"\n") * wanted["lines"] + b"last\n")
    if wanted["do"] == "grow":
        container.end(137, container.created_at, oom=True)
    if wanted["do"] == "ignore_term":
        await asyncio.sleep(60)
    await container.terminate.wait()
    await container.checkpoint()
    return 143


@dataclass
class FakeRig:
    kind: str = "fake"
    image: str = "none"
    abilities: Abilities = Abilities()

    def __post_init__(self) -> None:
        self.engine = FakeEngine("test", owner="we", behaviour=acts, cpus=2)

    def sibling(self, instance: str) -> Engine:
        other = FakeEngine(instance, owner="we", behaviour=acts)
        other.containers = self.engine.containers
        return other

    def namesake(self, owner: str) -> Engine:
        other = FakeEngine("test", owner=owner, behaviour=acts)
        other.containers = self.engine.containers
        return other

    def restarted(self) -> Engine:
        return self.engine

    async def pause(self, name: str) -> None:
        self.engine.pause(name)

    async def create_only(self, request: LaunchRequest) -> None:
        self.engine.faults.start_lost, self.engine.owner = True, None
        with contextlib.suppress(Exception):
            await self.engine.launch(request)
        self.engine.faults.start_lost, self.engine.owner = False, "we"

    async def vanish(self, name: str) -> None:
        self.engine.vanish(name)

    async def close(self) -> None:
        await self.engine.end_all()


def request(rig: Rig, boot_line: bytes, **changes: Any) -> LaunchRequest:
    run = changes.pop("run_id", uuid.uuid4().hex[:10])
    attempt = changes.pop("attempt", 1)
    values: dict[str, Any] = {
        "name": f"benchyard-test-{run}-a{attempt}",
        "run_id": run,
        "attempt": attempt,
        "instance_type": SMALL,
        "image": rig.image,
        "boot_line": boot_line,
        **changes,
    }
    return LaunchRequest(**values)


async def launch(engine: Engine, request: LaunchRequest, seconds: float = 300) -> ContainerFacts:
    """Launch, and wait until it has a place and has been started."""
    facts: ContainerFacts | None = await engine.launch(request)
    end = time.monotonic() + seconds
    while facts is None or facts.state is ContainerState.WAITING:
        if facts is None or time.monotonic() > end:
            raise AssertionError(f"{request.name} did not start: {facts}")
        await asyncio.sleep(0.05)
        facts = await engine.inspect(request.name)
    return facts


async def until(engine: Engine, name: str, state: ContainerState, seconds: float = 300) -> ContainerFacts:
    end = time.monotonic() + seconds
    while True:
        facts = await engine.inspect(name)
        if facts is not None and facts.state is state:
            return facts
        if time.monotonic() > end:
            raise AssertionError(f"{name} is {facts}, wanted {state}; log: {await engine.logs(name, tail_bytes=2000)!r}")
        await asyncio.sleep(0.03)


async def until_logged(engine: Engine, name: str, word: bytes, seconds: float = 300) -> bytes:
    end = time.monotonic() + seconds
    while word not in (text := await engine.logs(name, tail_bytes=1 << 20)):
        if time.monotonic() > end:
            raise AssertionError(f"{word!r} is not in {text[-2000:]!r}; {await engine.inspect(name)}")
        await asyncio.sleep(0.03)
    return text


async def first(stream: AsyncIterator[str], name: str, seconds: float = 300) -> None:
    async with asyncio.timeout(seconds):
        async for seen in stream:
            if seen == name:
                return
    raise AssertionError(f"the watch ended without {name}")
