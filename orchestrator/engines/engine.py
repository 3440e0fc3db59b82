"""The interface of engines, which start containers. The Docker, Kubernetes, process and fake engines implement this
specification.

Rules for every engine, checked by the conformance suite in `tests/engines`:

* **Names are the lock.** If `launch` finds a container of that name with our labels for the same run and attempt, it adopts
  it: it returns its facts, and starts it if it was only created. With other labels it raises `NameTaken` and leaves the
  foreign container alone.
* **Unreachable is not dead.** If the engine cannot be asked, the call raises `EngineUnreachable` and says nothing about any
  container. Only an answer of the engine is evidence: `inspect` returning None proves that there is no such container. A
  log that cannot be read because a container's machine is silent is empty; it does not make the engine unreachable.
* **Waiting is alive.** An engine that places containers itself may return from `launch` before the program runs: the
  container is then `waiting`, for a place, an image or a volume, and `detail` says in the engine's own words for what. It
  may run at any later time, so it holds its place in the capacity. `placed_at` is when it got a machine: the time that a
  runner has to report counts from there. `image_missing` means that its image could not be fetched for so long that it
  counts as `ImageMissing`. `boot_line_lost` means that its boot line will never come, because its launch was interrupted:
  it will not run, and whoever asked for it removes it and launches again. Engines of one machine start at once and never
  report `waiting`.
* **No room is no failure.** If a quota refuses the container, `launch` raises `NoRoom`: nothing was created, the run goes
  back to the queue, and no attempt is lost.
* **Already gone is success.** `stop`, `kill` and `remove` of a container that does not exist or run return quietly.
* **Nothing is removed implicitly.** An exited container stays, with exit code, OOM flag and log, until `remove`.
* **Only ours.** `list` returns containers of this instance (label `benchyard.instance`) in every state: created, waiting,
  running, paused, exited, dead. `stop`, `kill` and `remove` refuse a container without our instance label (`NameTaken`). Two
  installations may have the same instance name, such as a restored backup beside its original: a container whose label
  `benchyard.owner` names another installation is not ours. One without that label was made by an older version and is.
* **The boot line is secret.** It reaches the program on its standard input, directly or from a file that only the
  container's own user can read, and appears in no inspect output, argument, label, environment or log.
* **Bounded.** Every call ends within 10 seconds (`stop`: within `grace_s` + 10), with an answer or an error. A launch that
  fails half-way leaves no container behind, or one that `list` returns.

Engines differ in what they can do. A cluster cannot pause a container, so it never reports `paused`. It cannot send SIGKILL
alone: `kill` may send SIGTERM first, so that a program that listens ends with 143 instead of 137, and the grace of `stop`
may have been fixed at the launch. `stop` and `kill` of a waiting container may remove it, since it has neither exit code nor
log. `stats` is None where the engine has no counters; runners report their own usage in any case. What was only created may
be `waiting` instead of `created`.

Order of calls for one attempt: `launch`, any number of `inspect`/`stats`/`logs`, then `stop` or `kill` if it still runs,
`logs`, `remove`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

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


class NoRoom(EngineError):
    """The engine has no room for the container now, such as a quota that is used up. Nothing was created."""


class Unguarded(EngineError):
    """The engine works, but a runner would reach more than it may. Nothing must be launched until that has changed."""


class NameTaken(EngineError):
    """A container of that name exists and is not ours."""


@dataclass(frozen=True)
class Placement:
    """On which machines of a cluster containers may be placed. Engines of one machine ignore it."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    priority_class: str | None = None


ANYWHERE = Placement()


@dataclass(frozen=True)
class InstanceType:
    """Named limits of a container."""

    name: str
    vcpu: float
    memory_bytes: int
    disk_bytes: int
    max_instances: int | None = None
    """How many may run at once; None: limited only by capacity."""
    placement: Placement = field(default=ANYWHERE, hash=False)


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
    longest_s: int | None = None
    """After this time an engine may end the container by itself, in case nobody else does."""


class ContainerState(StrEnum):
    CREATED = "created"  #: exists, never started
    WAITING = "waiting"  #: accepted; waits for a place, an image or a volume, and will then run
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
    detail: str | None = None
    """The engine's own words: what it waits for, or what happened to it (evicted, its machine is lost)."""
    machine: str | None = None
    """The machine of a cluster that it was placed on."""
    placed_at: datetime | None = None
    """When it was placed; None while it waits for a place, and on engines of one machine."""
    image_missing: bool = False
    """It waits for an image that could not be fetched for a while."""
    boot_line_lost: bool = False
    """It waits for its boot line, which was lost; only `list` finds that out."""
    image_id: str | None = None
    """The image that it was made of, where a runner cannot know it from the launch."""
    evicted: bool = False
    """The cluster took its place away, or is about to: eviction, preemption, drain, or a lost machine."""


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
    EVICTION = "eviction"  #: `/tmp` of commands is on disk; a container that writes more than the type's size is evicted
    MEMORY = "memory"  #: `/tmp` is in the container's memory: at most half of it, and at most the type's disk
    FILE = "file"  #: limits the size of single files, not their sum


@dataclass(frozen=True)
class Machine:
    """One machine of a cluster."""

    name: str
    ready: bool
    cpus: float
    memory_bytes: int
    detail: str | None = None
    """Why it takes no new containers, or None."""


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
    memory_share: float = 0.9
    """The share of the memory that containers may use; the rest is for the host and the orchestrator."""
    machines: tuple[Machine, ...] = ()
    """The machines of a cluster."""
    machines_hidden: str | None = None
    """Why the machines of a cluster are not listed; None if they are, or if the engine is one machine."""


class Engine(Protocol):
    """See the module's docstring for the rules."""

    name: str

    async def prepare(self) -> None:
        """Create what every launch needs (the runner network). Idempotent; called before the first launch and in every
        round. Raises `Unguarded` if launches must wait because runners would reach more than they may."""

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
        """SIGTERM, then SIGKILL after `grace_s`, or after the grace that was fixed at the launch."""

    async def kill(self, name: str) -> None:
        """SIGKILL, or the engine's shortest way to it; works on a paused container too."""

    async def remove(self, name: str) -> None:
        """Remove an ended or never started container; a running one is killed first."""

    async def logs(self, name: str, *, tail_bytes: int) -> bytes:
        """The end of its standard output and error; empty if there is no such container."""

    async def stats(self, name: str) -> ContainerStats | None: ...

    def watch(self) -> AsyncIterator[str]:
        """Names of containers as they end, pause, disappear or change otherwise. Only a hint: it may miss, repeat and end
        at any time."""

    async def close(self) -> None: ...
