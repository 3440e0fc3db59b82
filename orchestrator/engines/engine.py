"""What starts containers. This module is the specification; `docker_engine`, `process_engine` and `fake_engine` obey it.

Rules that every engine keeps, and that the conformance suite in `tests/engines` checks:

* **Names are the lock.** `launch` with a name that exists already and whose labels are ours, for the same run and
  attempt, adopts that container: it returns its facts and starts it if it was only created. Other labels: `NameTaken`,
  and the foreign container is left alone.
* **Unreachable is not dead.** Whenever the engine cannot be asked, the call raises `EngineUnreachable` and says nothing
  about any container. Only an answer of the engine is evidence: `inspect` returning None proves that there is no such
  container.
* **Already gone is success.** `stop`, `kill` and `remove` of a container that is not there, or not running, return quietly.
* **Nothing is removed behind our back.** An exited container stays, with exit code, OOM flag and log, until `remove`.
* **Only ours.** `list` returns containers of this instance (label `benchyard.instance`) in every state: created, running,
  paused, exited, dead. `stop`, `kill` and `remove` refuse a container without our instance label (`NameTaken`). Two
  installations may carry one instance name, such as a restored backup beside its original: a container whose label
  `benchyard.owner` names another installation is not ours. One without that label was made by an older version and is.
* **The boot line is secret.** It reaches the program on its standard input and shows in no inspect output, argument,
  label, environment or log.
* **Bounded.** Every call ends within 10 seconds (`stop`: within `grace_s` + 10), with an answer or an error.
  A launch that fails half-way leaves no container behind, or leaves one that `list` shows.

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
    """The engine did not answer. Nothing is known; nothing may be concluded."""


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
    """How many may run at once; None leaves it to the capacity."""


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
    """A user's image, whose command the runner of `image` carries out: the container is of this image, and the runner is
    put into it. An engine without containers can only run what `image` itself holds."""


class ContainerState(StrEnum):
    CREATED = "created"  #: exists, never started
    RUNNING = "running"  #: its first process lives
    PAUSED = "paused"  #: frozen by somebody
    EXITED = "exited"  #: its first process ended
    DEAD = "dead"  #: the engine could not remove it whole; counts as ended


ENDED = frozenset({ContainerState.EXITED, ContainerState.DEAD})


@dataclass(frozen=True)
class ContainerFacts:
    """What the engine says of one container, read at once."""

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
    """What becomes of an instance type's disk."""

    QUOTA = "quota"  #: commands have `/tmp` on disk, as large as the type says and no larger
    MEMORY = "memory"  #: `/tmp` is in the container's memory: half of it at most, and no more than the type's disk
    FILE = "file"  #: no single file may be larger; all together are not limited


@dataclass(frozen=True)
class EngineInfo:
    name: str
    version: str
    cpus: int
    memory_bytes: int
    isolation: str
    """One plain sentence on how well containers are separated from the host."""
    less_isolated: bool = False
    disk_limit: DiskLimit = DiskLimit.FILE
    folder: Path | None = None
    """The directory of this machine that containers lie in, if the engine is on this machine."""


class Engine(Protocol):
    """See the module's docstring for the rules."""

    name: str

    async def prepare(self) -> None:
        """Make what every launch needs (the runner network). Idempotent; called before the first launch and on trouble."""

    async def teardown(self) -> None:
        """Undo `prepare`: remove the runner network, unless something is on it, and whatever else is kept for launches.
        Idempotent; the next launch makes it again."""

    async def check(self) -> None:
        """Raise `EngineError` when no launch could work now for want of what `prepare` makes. Changes nothing."""

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
        """The end of what it wrote to standard output and error; empty when there is no such container."""

    async def stats(self, name: str) -> ContainerStats | None: ...

    def watch(self) -> AsyncIterator[str]:
        """Names of containers as they end, pause or go. Only a hint: it may miss, repeat and end at any time."""

    async def close(self) -> None: ...
