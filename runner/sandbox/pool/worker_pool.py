"""All processes of the sandbox, seen from the runner: fork server, zygotes by flavour, workers. Replaces those that died."""

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import Any

from runner.sandbox.kernel import landlock, syscalls
from runner.sandbox.level import Level
from runner.sandbox.limits import Allow
from runner.sandbox.pool.child import Child
from runner.sandbox.pool.memory_files import StreamPool
from runner.sandbox.pool.worker import Forker, ForkServer, GoneError, SandboxLostError, Worker
from runner.sandbox.protocol.messages import SupervisorSpec

DEFAULT_UID_BASE = 58_000
CANDIDATE, JUDGE = "candidate", "judge"
PLAIN = "plain"


class SandboxUnavailableError(Exception):
    """No sufficiently safe set of layers works on this machine; the message says what was tried."""


class StillbornError(GoneError):
    """A zygote ended before it was ready; its fork server is fine."""


class ProfileError(Exception):
    """A program asked for permissions that cannot be granted safely on this machine."""


@dataclass(frozen=True)
class Choice:
    """Which optional layers to use."""

    uid_base: int
    """First user id of the slots, -1 for none."""
    use_landlock: bool

    def settings(self) -> dict[str, Any]:
        """Returns the settings for the fork server."""
        return {"uid_base": self.uid_base, "landlock": self.use_landlock, "no_open": not self.use_landlock}


def choices(uid_base: int | None, *, use_uids: bool = True, use_landlock: bool = True) -> list[Choice]:
    """Returns the choices that may work here, strongest first."""
    if not syscalls.supported():
        raise SandboxUnavailableError(f"system call numbers of {syscalls.ARCH} are not known")
    base = DEFAULT_UID_BASE if uid_base is None else uid_base
    uids = [base, -1] if os.geteuid() == 0 and use_uids else [-1]
    locks = [True, False] if use_landlock and landlock.abi() else [False]
    return [Choice(uid, lock) for lock in locks for uid in uids]


@dataclass
class Slot:
    """Room for one running program; its workers are opened when first needed."""

    index: int
    workers: dict[tuple[str, str, Allow], Worker] = field(default_factory=dict)
    judges: dict[str, Child] = field(default_factory=dict)
    """Processes that run test code, by flavour; they never run a line of a program, so they are reused."""

    async def settle(self, besides: Worker | None) -> None:
        """Waits until no earlier program is left; the given worker takes care of its own."""
        for (_, role, _), worker in self.workers.items():
            if role == CANDIDATE and worker is not besides and not worker.closed:
                await worker.ready()

    def dismiss(self, flavour: str) -> None:
        """Abandons a judge."""
        judge = self.judges.pop(flavour, None)
        if judge is not None:
            judge.abandon()

    def discard(self) -> None:
        """Abandons all its processes."""
        for flavour in list(self.judges):
            self.dismiss(flavour)
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()


class WorkerPool:
    """Owns the processes."""

    def __init__(self, choice: Choice, slots: int) -> None:
        self._choice, self._slots = choice, slots
        self._fork_server: ForkServer | None = None
        self._zygotes: dict[str, Forker] = {}
        self._missing: set[str] = set()
        self._turn = asyncio.Lock()
        self._stream_pool = StreamPool()
        self.level: Level | None = None

    async def worker(self, slot: Slot, flavour: str, role: str, allow: Allow = Allow.NOTHING) -> Worker:
        """Returns a slot's worker for programs of this flavour and profile; `role` separates candidates and judges."""
        if flavour in self._missing:
            flavour = PLAIN
        worker = slot.workers.get((flavour, role, allow))
        if role == CANDIDATE:
            await slot.settle(besides=worker)
        if worker is not None and not worker.closed:
            return worker
        self._check_profile(allow)
        spec = SupervisorSpec(self._uid(slot, role), allow.value, int(role == CANDIDATE and not allow))
        try:
            worker = await self._open_worker(flavour, spec)
        except GoneError:  # the zygote had died, maybe with its fork server: start a new one
            worker = await self._open_worker(flavour, spec)
        if worker is None:
            return await self.worker(slot, PLAIN, role, allow)
        slot.workers[flavour, role, allow] = worker
        return worker

    def _check_profile(self, allow: Allow) -> None:
        if Allow.FILES in allow and self.level is not None and self.level.landlock < landlock.FOR_WRITING:
            raise ProfileError("programs can't be let write files here: Landlock is missing or too old to say which")

    async def _open_worker(self, flavour: str, spec: SupervisorSpec) -> Worker | None:
        zygote = await self._zygote(flavour)
        if zygote is None:
            return None
        try:
            return await Worker.open(zygote, spec, self._stream_pool)
        except GoneError:
            await self._forget(flavour, zygote)
            raise

    def _uid(self, slot: Slot, role: str) -> int:
        if self._choice.uid_base < 0:
            return -1
        return self._choice.uid_base + slot.index + (self._slots if role == JUDGE else 0)

    async def _zygote(self, flavour: str) -> Forker | None:
        async with self._turn:
            if flavour not in self._zygotes and flavour not in self._missing:
                try:
                    zygote, hello = await self._start_zygote(flavour)
                except StillbornError:  # its libraries crash the process that loads them
                    if flavour == PLAIN:
                        raise
                    self._missing.add(flavour)
                    return None
                if "missing" in hello:
                    zygote.close()
                    self._missing.add(flavour)
                    return None
                self._zygotes[flavour] = zygote
                self.level = Level(
                    uid=hello["uid"],
                    landlock=hello["landlock"],
                    seccomp=hello["open_mode"],
                    rlimits=True,
                    cgroup=hello["cgroup"],
                    no_cgroup=hello["no_cgroup"],
                )
            return self._zygotes.get(flavour)

    async def _start_zygote(self, flavour: str) -> tuple[Forker, dict[str, Any]]:
        try:
            return await self._ask_fork_server(flavour)
        except StillbornError:
            pass  # retry with the same fork server: a runner that has dropped root could not replace it
        except GoneError:
            await self._close_fork_server()
        return await self._ask_fork_server(flavour)

    async def _ask_fork_server(self, flavour: str) -> tuple[Forker, dict[str, Any]]:
        if self._fork_server is None:
            if self._choice.uid_base >= 0 and os.geteuid() != 0:
                raise SandboxLostError("the fork server has died and only root could replace it")
            fork_server = ForkServer.spawn(self._choice.settings())
            try:
                await fork_server.hello()
            except BaseException:
                await fork_server.aclose()
                raise
            self._fork_server = fork_server  # not earlier: a late greeting would be taken for an answer
        _, ours = await self._fork_server.fork(flavour)
        zygote = Forker(ours)
        try:
            hello: dict[str, Any] = json.loads(await zygote.hello())
        except BaseException as error:
            zygote.close()
            if isinstance(error, GoneError):
                raise StillbornError(str(error)) from None
            raise
        return zygote, hello

    async def _forget(self, flavour: str, zygote: Forker) -> None:
        async with self._turn:
            if self._zygotes.get(flavour) is zygote:
                del self._zygotes[flavour]
            zygote.close()

    async def _close_fork_server(self) -> None:
        fork_server, self._fork_server = self._fork_server, None
        if fork_server is not None:
            await fork_server.aclose()

    async def aclose(self) -> None:
        """Ends all processes."""
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes.clear()
        self._stream_pool.close()
        await self._close_fork_server()
