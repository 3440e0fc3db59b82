"""The interface of engines, which start containers. The Docker, process and fake engines implement this specification.

Rules for every engine, checked by the conformance suite in `tests/engines`:

* **Names are the lock.** If `launch` finds a container of that name with our labels for the same run and attempt, it adopts
  it: it returns its facts, and starts it if it was only created. With other labels it raises `NameTaken` and leaves the
  foreign container alone.
* **Unreachable is not dead.** If the engine cannot be asked, the call raises `EngineUnreachable` and says nothing about any
  container. Only an answer of the engine is evidence: `inspect` returning None proves that there is no such container.
* **Already gone is success.** `stop`, `kill` and `remove` of a container that does not exist or run return quietly.
* **Nothing is removed implicitly.** An exited container stays, with exit code, OOM flag and log, until `remove`.
* **Only ours.** `list` returns containers of this instance (label `benchyard.instance`) in every state: created, running,
  paused, exited, dead. `stop`, `kill` and `remove` refuse a container without our instance label (`NameTaken`). Two
  installations may have the same instance name, such as a restored backup beside its original: a container whose label
  `benchyard.owner` names another installation is not ours. One without that label was made by an older version and is.
* **The boot line is secret.** It reaches the program on its standard input and appears in no inspect output, argument,
  label, environment or log.
* **Bounded.** Every call ends within 10 seconds (`stop`: within `grace_s` + 10), with an answer or an error. A launch that
  fails half-way leaves no container behind, or one that `list` returns.

Order of calls for one attempt: `launch`, any number of `inspect`/`stats`/`logs`, then `stop` or `kill` if it still runs,
`logs`, `remove`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

LABEL_INSTANCE = "benchyard.instance"
LABEL_OWNER = "benchyard.owner"
LABEL_RUN = "benchyard.run"
LABEL_ATTEMPT = "benchyard.attempt"
LABEL_INSTANCE_TYPE = "benchyard.instance_type"


class EngineError(Exception):
    """The engine refused the call; the message is its own."""


class EngineUnreachable(EngineError):
    """The engine did not answer, so nothing may be concluded about any container."""


class ImageMissing(EngineError):
    """The image is not on the engine and could not be pulled."""


class NameTaken(EngineError):
    """A container of that name exists and is not ours."""


@dataclass(frozen=True)
class InstanceType:
    """Named limits of a container."""

    name: str
    vcpu: float
    memory_bytes: int
    disk_bytes: int
    max_instances: int | None = None
    """How many may run at once; None: limited only by capacity."""


@dataclass(frozen=True)
class LaunchRequest:
    name: str
    run_id: str
    attempt: int
    instance_type: InstanceType
    image: str
    boot_line: bytes = field(repr=False)
    sandbox_slots: int = 1
    guest: str | None = None
    """A user's image, whose command the runner carries out: the container is made from this image, and the runner of
    `image` is added to it. An engine without containers can only run what `image` itself contains."""


class ContainerState(StrEnum):
    CREATED = "created"  #: exists, never started
    RUNNING = "running"  #: its first process is alive
    PAUSED = "paused"  #: frozen by somebody
    EXITED = "exited"  #: its first process ended
    DEAD = "dead"  #: the engine could not remove it completely; counts as ended


ENDED = frozenset({ContainerState.EXITED, ContainerState.DEAD})


@dataclass(frozen=True)
class ContainerFacts:
    """What the engine reports about one container, read at once."""

    name: str
    container_id: str
    state: ContainerState
    run_id: str | None
    attempt: int | None
    instance_type: str | None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    oom_killed: bool = False


@dataclass(frozen=True)
class ContainerStats:
    """The kernel's counters of one container."""

    cpu_s: float
    memory_bytes: int
    memory_limit_bytes: int
    pids: int = 0
    throttled_s: float = 0.0


class DiskLimit(StrEnum):
    """How an instance type's disk size is enforced."""

    QUOTA = "quota"  #: `/tmp` of commands is on disk, limited to the type's size
    MEMORY = "memory"  #: `/tmp` is in the container's memory: at most half of it, and at most the type's disk
    FILE = "file"  #: limits the size of single files, not their sum


@dataclass(frozen=True)
class EngineInfo:
    name: str
    version: str
    cpus: int
    memory_bytes: int
    isolation: str
    """One plain sentence on how well containers are isolated from the host."""
    less_isolated: bool = False
    disk_limit: DiskLimit = DiskLimit.FILE
    folder: Path | None = None
    """The directory on this machine that holds the containers, if the engine is on this machine."""


class Engine(Protocol):
    """See the module's docstring for the rules."""

    name: str

    async def prepare(self) -> None:
        """Create what every launch needs (the runner network). Idempotent; called before the first launch and after
        failures."""

    async def teardown(self) -> None:
        """Undo `prepare`: remove the runner network, unless it is in use, and whatever else is kept for launches.
        Idempotent; the next launch creates it again."""

    async def check(self) -> None:
        """Raise `EngineError` if what `prepare` makes is missing, so that no launch could work. Changes nothing."""

    async def info(self) -> EngineInfo: ...

    async def launch(self, request: LaunchRequest) -> ContainerFacts: ...

    async def list(self) -> list[ContainerFacts]: ...

    async def inspect(self, name: str) -> ContainerFacts | None: ...

    async def stop(self, name: str, *, grace_s: float) -> None:
        """SIGTERM, then SIGKILL after `grace_s`."""

    async def kill(self, name: str) -> None:
        """SIGKILL; works on a paused container too."""

    async def remove(self, name: str) -> None:
        """Remove an ended or never started container; a running one is killed first."""

    async def logs(self, name: str, *, tail_bytes: int) -> bytes:
        """The end of its standard output and error; empty if there is no such container."""

    async def stats(self, name: str) -> ContainerStats | None: ...

    def watch(self) -> AsyncIterator[str]:
        """Names of containers as they end, pause or disappear. Only a hint: it may miss, repeat and end at any time."""

    async def close(self) -> None: ...
