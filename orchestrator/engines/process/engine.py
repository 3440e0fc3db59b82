"""Runs each "container" as a local process, for machines without a container engine; implements `engines.engine`.

Much less isolated than a container: the runner is a process of the orchestrator's user, with access to that user's files and
network; only the runner's own sandbox separates generated code from the machine. `EngineInfo` says so, and whatever displays
it must too. Limits: the supervisor watches memory, rlimits cover the rest; CPU is not limited.

A supervisor process per program (`supervisor`) outlives the orchestrator and records the end; all persistent state is in a
directory per container (`directory`). If the supervisor is killed, the kernel kills the program too.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from orchestrator.engines.bounded_threads import BoundedThreads, Deadline
from orchestrator.engines.engine import (
    ContainerFacts,
    ContainerState,
    ContainerStats,
    EngineError,
    EngineInfo,
    EngineUnreachable,
    LaunchRequest,
)
from orchestrator.engines.launch_rules import check_fits, check_ours, check_same_attempt, is_runner, labels_of
from orchestrator.engines.process import supervisor as process_keeper
from orchestrator.engines.process.directory import ProcessBox

T = TypeVar("T")

KILL_WAIT_S = 5.0
WATCH_S = 0.5
OPEN_FILES = 1024
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,200}")


@dataclass(frozen=True)
class ProcessEngineConfig:
    instance: str
    root: Path
    """One directory per container is created in it."""
    command: tuple[str, ...] = (sys.executable, "-m", "runner")
    source_root: Path = Path(__file__).resolve().parents[3]
    """Directory that contains the runner package."""
    owner: str | None = None
    """Value of the label `benchyard.owner`."""
    call_limit_s: float = 9.5
    start_limit_s: float = 6.0


class ProcessEngine:
    name = "process"

    def __init__(self, config: ProcessEngineConfig) -> None:
        self.config = config
        self._root = config.root.absolute()
        self._threads = BoundedThreads(8, "process-engine")

    async def prepare(self) -> None:
        await self._call(lambda _: self._root.mkdir(parents=True, exist_ok=True, mode=0o700))

    async def teardown(self) -> None:
        """There is nothing to undo."""

    async def check(self) -> None:
        def writable(_: Deadline) -> None:
            if not os.access(self._root, os.W_OK | os.X_OK):
                raise EngineError(f"The process engine's directory {self._root} cannot be written.")

        await self._call(writable)

    async def info(self) -> EngineInfo:
        return EngineInfo(
            name=self.name,
            version=platform.python_version(),
            cpus=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            isolation=(
                "No containers: each run is a process of the orchestrator's own user, with this machine's files and network "
                "in reach; only the runner's sandbox holds generated code back."
            ),
            less_isolated=True,
            folder=self._root if self._root.is_dir() else None,
        )

    async def launch(self, request: LaunchRequest) -> ContainerFacts:
        return await self._call(lambda _: self._launch(request))

    async def list(self) -> list[ContainerFacts]:
        return [*await self._call(self._list)]

    async def inspect(self, name: str) -> ContainerFacts | None:
        return await self._call(lambda _: self._box(name).facts())

    async def stop(self, name: str, *, grace_s: float) -> None:
        def stop(box: ProcessBox) -> None:
            if box.signal(signal.SIGTERM) and not box.wait(grace_s):
                self._kill(box)

        await self._on_ours(name, stop, more_s=grace_s)

    async def kill(self, name: str) -> None:
        await self._on_ours(name, self._kill)

    async def remove(self, name: str) -> None:
        def remove(box: ProcessBox) -> None:
            self._kill(box)
            box.remove()

        await self._on_ours(name, remove)

    async def logs(self, name: str, *, tail_bytes: int) -> bytes:
        return await self._call(lambda _: self._box(name).log(tail_bytes))

    async def stats(self, name: str) -> ContainerStats | None:
        def read(_: Deadline) -> ContainerStats | None:
            box = self._box(name)
            return box.stats(int((box.meta() or {}).get("memory_bytes", 0)))

        return await self._call(read)

    async def watch(self) -> AsyncIterator[str]:
        before: dict[str, ContainerState] = {}
        try:
            while True:
                now = {facts.name: facts.state for facts in await self.list()}
                for name in before.keys() | now.keys():
                    if before.get(name) != now.get(name):
                        yield name
                before = now
                await asyncio.sleep(WATCH_S)
        except EngineError:
            return

    async def close(self) -> None:
        self._threads.close()

    async def _call(self, function: Callable[[Deadline], T], more_s: float = 0) -> T:
        limit_s = self.config.call_limit_s + more_s
        try:
            return await self._threads.call(function, limit_s=limit_s)
        except TimeoutError as error:
            raise EngineUnreachable(f"The process engine did not answer within {limit_s:g} s.") from error
        except OSError as error:
            raise EngineUnreachable(f"The process engine's directory {self._root} cannot be used: {error}") from error

    async def _on_ours(self, name: str, act: Callable[[ProcessBox], None], more_s: float = 0) -> None:
        def step(_: Deadline) -> None:
            box = self._box(name)
            if box.path.exists():
                check_ours(box.labels(), name, self.config.instance, self.config.owner)
                act(box)

        await self._call(step, more_s)

    # -- run in the threads

    def _box(self, name: str) -> ProcessBox:
        if not _NAME.fullmatch(name):
            raise EngineError(f"{name!r} cannot be the name of a container.")
        return ProcessBox(self._root / name)

    def _list(self, _: Deadline) -> tuple[ContainerFacts, ...]:
        if not self._root.exists():
            return ()
        boxes = [ProcessBox(path) for path in sorted(self._root.iterdir()) if not path.name.startswith(".")]
        instance, owner = self.config.instance, self.config.owner
        found = (box.facts() for box in boxes if is_runner(box.labels(), instance, owner))
        return tuple(facts for facts in found if facts is not None)

    def _launch(self, request: LaunchRequest) -> ContainerFacts:
        check_fits(request.instance_type, os.cpu_count() or 1)
        if request.guest not in (None, request.image):
            raise EngineError(f"There is no container engine here that could start image {request.guest}.")
        path = self._box(request.name).path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        kind = request.instance_type
        meta = {
            "id": uuid.uuid4().hex,
            "labels": labels_of(request, self.config.instance, self.config.owner),
            "created_at": time.time(),
            "memory_bytes": kind.memory_bytes,
        }
        order = {
            "command": self.config.command,
            "work": str(path / "work"),
            "environment": self._environment(path),
            "memory_bytes": kind.memory_bytes,
            "limits": {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": OPEN_FILES, "RLIMIT_FSIZE": kind.disk_bytes},
        }
        try:
            box = ProcessBox.make(path, meta, order)
        except OSError as error:
            raise EngineError(f"The directory for {request.name} could not be made: {error}") from error
        if box is None:
            return self._adopt(request)
        try:
            self._start(box, request.boot_line)
        except EngineError:
            box.remove()
            raise
        return self._facts(box)

    def _adopt(self, request: LaunchRequest) -> ContainerFacts:
        box = self._box(request.name)
        check_same_attempt(box.labels(), request, self.config.instance, self.config.owner)
        if self._facts(box).state is ContainerState.CREATED:
            self._start(box, request.boot_line)
        return self._facts(box)

    def _start(self, box: ProcessBox, boot_line: bytes) -> None:
        """Returns when the program runs; the supervisor's first process exits at that moment."""
        command = [sys.executable, "-I", "-S", process_keeper.__file__, str(box.path)]
        try:
            done = subprocess.run(
                command,
                input=boot_line.rstrip(b"\n") + b"\n",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                start_new_session=True,
                timeout=self.config.start_limit_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineError(f"The program of {box.name} could not be started: {error}") from error
        if done.returncode == process_keeper.ALREADY:
            box.wait_started(self.config.start_limit_s / 2)
        elif done.returncode:
            raise EngineError(f"The program of {box.name} could not be started; its keeper ended with {done.returncode}.")

    def _environment(self, path: Path) -> dict[str, str]:
        """Only what a program needs: the orchestrator's own environment contains keys."""
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        work = str(path / "work")
        return {**kept, "HOME": work, "TMPDIR": work, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(self.config.source_root)}

    def _facts(self, box: ProcessBox) -> ContainerFacts:
        facts = box.facts()
        if facts is None:
            raise EngineError(f"Container {box.name} was removed while it was being launched.")
        return facts

    def _kill(self, box: ProcessBox) -> None:
        box.signal(signal.SIGKILL)
        if not box.wait(KILL_WAIT_S):
            raise EngineError(f"The program of {box.name} did not end within {KILL_WAIT_S:g} s of being killed.")
