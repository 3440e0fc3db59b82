"""All processes of the sandbox as the runner knows them: a keeper, zygotes by flavour, and lanes; replaces what died."""

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import Any

from runner.sandbox import kernel, landlock
from runner.sandbox.child import Child
from runner.sandbox.handoff import Pool
from runner.sandbox.lane import Forker, GoneError, Keeper, Lane
from runner.sandbox.level import Level
from runner.sandbox.limits import Allow
from runner.sandbox.wire import Post

DEFAULT_UID_BASE = 58_000
CANDIDATE, JUDGE = "candidate", "judge"
PLAIN = "plain"


class SandboxUnavailableError(Exception):
    """No set of layers that is safe enough works on this machine; the message says what was tried."""


class StillbornError(GoneError):
    """A zygote ended before it was ready; its keeper is well."""


class ProfileError(Exception):
    """A program was to be allowed what can't be allowed safely on this machine."""


@dataclass(frozen=True)
class Choice:
    """Which optional layers to use."""

    uid_base: int
    """First user id of the slots, -1 for none."""
    use_landlock: bool

    def settings(self) -> dict[str, Any]:
        """For the keeper."""
        return {"uid_base": self.uid_base, "landlock": self.use_landlock, "no_open": not self.use_landlock}


def choices(uid_base: int | None, *, use_uids: bool = True, use_landlock: bool = True) -> list[Choice]:
    """What may work here, strongest first."""
    if not kernel.supported():
        raise SandboxUnavailableError(f"system call numbers of {kernel.ARCH} are not known")
    base = DEFAULT_UID_BASE if uid_base is None else uid_base
    uids = [base, -1] if os.geteuid() == 0 and use_uids else [-1]
    locks = [True, False] if use_landlock and landlock.abi() else [False]
    return [Choice(uid, lock) for lock in locks for uid in uids]


@dataclass
class Slot:
    """One place where a program can run; its lanes are opened when first needed."""

    index: int
    lanes: dict[tuple[str, str, Allow], Lane] = field(default_factory=dict)
    judges: dict[str, Child] = field(default_factory=dict)
    """Processes that run test code, by flavour; they never run a line of a program and so serve more than once."""

    async def settle(self, besides: Lane | None) -> None:
        """Wait until no program of before is left; the given lane will see to that itself."""
        for (_, role, _), lane in self.lanes.items():
            if role == CANDIDATE and lane is not besides and not lane.closed:
                await lane.ready()

    def dismiss(self, flavour: str) -> None:
        """Let go of a judge."""
        judge = self.judges.pop(flavour, None)
        if judge is not None:
            judge.abandon()

    def discard(self) -> None:
        """Let go of all its processes."""
        for flavour in list(self.judges):
            self.dismiss(flavour)
        for lane in self.lanes.values():
            lane.close()
        self.lanes.clear()


class Crew:
    """Owns the processes."""

    def __init__(self, choice: Choice, slots: int) -> None:
        self._choice, self._slots = choice, slots
        self._keeper: Keeper | None = None
        self._zygotes: dict[str, Forker] = {}
        self._missing: set[str] = set()
        self._turn = asyncio.Lock()
        self._pool = Pool()
        self.level: Level | None = None

    async def lane(self, slot: Slot, flavour: str, role: str, allow: Allow = Allow.NOTHING) -> Lane:
        """The lane of a slot for programs of that flavour and profile; `role` keeps candidates and judges apart."""
        if flavour in self._missing:
            flavour = PLAIN
        lane = slot.lanes.get((flavour, role, allow))
        if role == CANDIDATE:
            await slot.settle(besides=lane)
        if lane is not None and not lane.closed:
            return lane
        self._check_profile(allow)
        post = Post(self._uid(slot, role), allow.value, int(role == CANDIDATE and not allow))
        try:
            lane = await self._open_lane(flavour, post)
        except GoneError:  # the zygote had died, maybe with its keeper: a new one
            lane = await self._open_lane(flavour, post)
        if lane is None:
            return await self.lane(slot, PLAIN, role, allow)
        slot.lanes[flavour, role, allow] = lane
        return lane

    def _check_profile(self, allow: Allow) -> None:
        if Allow.FILES in allow and self.level is not None and self.level.landlock < landlock.FOR_WRITING:
            raise ProfileError("programs can't be let write files here: Landlock is missing or too old to say which")

    async def _open_lane(self, flavour: str, post: Post) -> Lane | None:
        zygote = await self._zygote(flavour)
        if zygote is None:
            return None
        try:
            return await Lane.open(zygote, post, self._pool)
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
                except StillbornError:  # its libraries end a process that loads them
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
            return await self._ask_keeper(flavour)
        except StillbornError:
            pass  # the same keeper once more: a runner that has given up root could not replace it
        except GoneError:
            await self._close_keeper()
        return await self._ask_keeper(flavour)

    async def _ask_keeper(self, flavour: str) -> tuple[Forker, dict[str, Any]]:
        if self._keeper is None:
            if self._choice.uid_base >= 0 and os.geteuid() != 0:
                raise GoneError("the keeper has died and only root could replace it")
            keeper = Keeper.spawn(self._choice.settings())
            try:
                await keeper.hello()
            except BaseException:
                await keeper.aclose()
                raise
            self._keeper = keeper  # not before: a late greeting would be taken for an answer
        _, ours = await self._keeper.fork(flavour)
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

    async def _close_keeper(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.aclose()

    async def aclose(self) -> None:
        """End everything."""
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes.clear()
        self._pool.close()
        await self._close_keeper()
