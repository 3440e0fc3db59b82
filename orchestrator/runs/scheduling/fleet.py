"""The state of the engine: reachability, capacity, disk, and why runs wait. Refreshed by the loops."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import structlog
from sqlmodel import Session

from orchestrator.costs import queries as machine_queries
from orchestrator.db.session import Database
from orchestrator.db.workspaces import acting_as, current_actor
from orchestrator.engines.engine import (
    ContainerFacts,
    ContainerState,
    ContainerStats,
    Engine,
    EngineError,
    EngineInfo,
    EngineUnreachable,
    Unguarded,
)
from orchestrator.jobs import queries as job_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.reasons import HELD
from orchestrator.runs.reports.machine_cost import LastHour
from orchestrator.runs.scheduling.capacity import LOCAL, Capacity, Load, Place, kind_is_full, why_nowhere
from orchestrator.runs.scheduling.dispatcher import Hold
from orchestrator.runs.scheduling.holder_limits import HoldersAtLimit, full_holders
from orchestrator.runs.scheduling.remote import held_here, places
from orchestrator.runs.scheduling.room_refusals import RoomRefusals
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.runs.warm_pool.tables import WarmRunner
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.system.files import DiskRoom

log = structlog.get_logger()

ANSWER_S = 4.0
"""How long the engine may take to answer a readiness check."""
ELSEWHERE = "(of another workspace)"


@dataclass(frozen=True)
class PoolState:
    instance_type: str
    warm: int
    ready: int
    starting: int
    sleep_after_s: float


@dataclass(frozen=True)
class TypeCounts:
    """Containers of one instance type: those of runs, and those of the warm pool, ready or starting."""

    in_use: int
    ready: int
    starting: int


@dataclass(frozen=True)
class Waiting:
    run: ContainerRun
    why: str
    position: int | None = None
    """From 1; None while nothing starts, or this run may not."""

    @property
    def sentence(self) -> str:
        """For people, without the full stop."""
        return f"Queued: {self.why}" if self.position is None else f"Queued, {_in_line(self.position)}: {self.why}"


def _in_line(position: int) -> str:
    if position == 1:
        return "next in line"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(position % 10, "th") if position % 100 not in (11, 12, 13) else "th"
    return f"{position}{ending} in line"


def _stands_ready(row: WarmRunner) -> bool:
    return row.ready_at is not None and row.retired is None


class Fleet:
    def __init__(
        self,
        engine: Engine,
        db: Database,
        settings: Settings,
        clock: Clock,
        data_dir: Path,
        refusals: RoomRefusals | None = None,
    ) -> None:
        self._engine = engine
        self._db = db
        self._settings = settings
        self._clock = clock
        self._data_dir = data_dir
        self.info: EngineInfo | None = None
        self.error: str | None = None
        self.network_error: str | None = None
        """Why containers could not reach us although the engine answers."""
        self.guard_error: str | None = None
        """What containers would reach that they must not."""
        self._refusals = refusals or RoomRefusals(clock)

    @property
    def engine_name(self) -> str:
        return self._engine.name

    async def refresh(self) -> None:
        """Prepare the engine for launches, and read its state."""
        try:
            await self._prepare()
            self.info = await self._engine.info()
            if self.error is not None:
                log.info("engine is back", action="engine_back")
            self.error = None
        except EngineError as error:
            self._found_unreachable(str(error))

    def _found_unreachable(self, why: str) -> None:
        """Nothing is dispatched until a refresh succeeds."""
        if self.error is None:
            log.warning("engine unreachable", action="engine_unreachable", error=why)
        self.error = why

    async def _prepare(self) -> None:
        try:
            await self._engine.prepare()
            if self.network_error is not None:
                log.info("runner network is back", action="network_back")
            self.network_error = self.guard_error = None
        except EngineUnreachable:
            raise
        except Unguarded as error:
            if self.guard_error != str(error):
                log.warning("runners are not contained", action="unguarded", error=str(error))
            self.guard_error, self.network_error = str(error), None
        except EngineError as error:
            if self.network_error != str(error):
                log.warning("runner network", action="network_failed", error=str(error))
            self.network_error = str(error)

    async def troubles(self) -> dict[str, str]:
        """What prevents runs from starting right now, by part: engine, network, disk. Queries the engine; while it does not
        answer, nothing is dispatched."""
        found: dict[str, str] = {}
        if self.info is None:
            found["engine"] = self.error or "The engine has not answered yet."
        else:
            try:
                async with asyncio.timeout(ANSWER_S):
                    await self._engine.check()
            except EngineUnreachable as error:
                self._found_unreachable(str(error))
            except EngineError as error:
                found["network"] = self.network_error or self.guard_error or str(error)
            except TimeoutError:
                self._found_unreachable(f"The {self._engine.name} engine has not answered within {ANSWER_S:g} s.")
            if self.error is not None:
                found.setdefault("engine", self.error)
            if (trouble := self.network_error or self.guard_error) is not None:
                found.setdefault("network", trouble)
        if (disk := self._disk_trouble()) is not None:
            found["disk"] = disk
        return found

    def capacity(self) -> Capacity | None:
        """None until the engine has answered once."""
        if self.info is None:
            return None
        memory_mib = self._settings.memory_capacity_mib
        return Capacity(
            max_instances=self._settings.max_instances,
            vcpu=self._settings.vcpu_capacity or float(self.info.cpus),
            memory_bytes=memory_mib << 20 if memory_mib else int(self.info.memory_bytes * self.info.memory_share),
        )

    @property
    def disk_has_room(self) -> bool:
        return self._disk_trouble() is None

    def hold(self) -> Hold | None:
        """Why nothing at all is dispatched, or None. Looks at the disk each time: it may fill up at any moment."""
        if self.error is not None:
            return Hold(f"The {self._engine.name} engine does not answer; runs wait until it does. ({self.error})")
        if self.network_error is not None:
            return Hold(f"Containers would not reach this service; runs wait until they can. ({self.network_error})")
        if self.guard_error is not None:
            return Hold(f"Runs wait until runners are contained. {self.guard_error}")
        return self._disk_hold()

    async def pools(self) -> list[PoolState]:
        """The pools in the settings, and any others that still have runners."""
        rows = await self._db.read(pool_queries.waiting)
        found = []
        for name in self._settings.instance_types:
            warm, sleep_after_s = self._settings.pool(name)
            mine = [row for row in rows if row.instance_type == name]
            if warm or mine:
                ready = sum(map(_stands_ready, mine))
                found.append(PoolState(name, warm, ready, len(mine) - ready, sleep_after_s))
        return found

    async def counts(self) -> dict[str, TypeCounts]:
        """Containers by instance type on our own engine, across all workspaces."""

        def read(session: Session) -> tuple[list[str], list[tuple[str, bool]]]:
            standing = [(row.instance_type, _stands_ready(row)) for row in pool_queries.waiting(session)]
            return [row.instance_type for row in held_here(session)], standing

        held, standing = await self._db.read(read)
        return {
            name: TypeCounts(
                in_use=held.count(name), ready=standing.count((name, True)), starting=standing.count((name, False))
            )
            for name in self._settings.instance_types
        }

    async def last_hour(self) -> LastHour:
        """Statistics on the starts of the last hour."""
        now = self._clock.now()
        rows = await self._db.read(lambda session: machine_queries.starts(session, now - timedelta(hours=1)))
        waits = [(row.dispatched_at - row.created_at).total_seconds() for row in rows if row.number == 1]
        lived = [
            (row.last_event_at - row.claimed_at).total_seconds() for row in rows if row.claimed_at and row.last_event_at
        ]
        return LastHour(
            starts=len(rows),
            refused=sum(row.reason in machine_queries.REFUSALS for row in rows),
            mean_wait_s=sum(waits) / len(waits) if waits else 0.0,
            longest_wait_s=max(waits, default=0.0),
            running_s=sum(lived),
            throttled_s=sum(row.throttled_s for row in rows),
        )

    async def load(self) -> Load:
        """Resources held by containers that may still be alive, including those of runs that have just ended."""

        def read(session: Session) -> list[str]:
            attempts, ready = held_here(session), pool_queries.waiting(session)
            return [*(row.instance_type for row in attempts), *(row.instance_type for row in ready)]

        held, types = await self._db.read(read), self._settings.instance_types
        return Load.of(self._settings.instance_type(name) for name in held if name in types)

    async def waiting(self) -> list[Waiting]:
        """Pending runs in the order in which they will start, each with the reason why it waits. All workspaces share one
        queue, but the caller only sees the runs of their own."""
        who = current_actor()
        with acting_as(None):
            waiting = await self._waiting()
        return [row for row in waiting if who is None or row.run.workspace_id == who.workspace_id]

    async def _waiting(self) -> list[Waiting]:
        now, capacity, hold = self._clock.now(), self.capacity(), self.hold()

        types = {name: self._settings.instance_type(name) for name in self._settings.instance_types}

        def read(session: Session) -> tuple[list[ContainerRun], dict[str, int], list[Place], HoldersAtLimit]:
            running = job_queries.holding_by_kind(session)
            return list(run_queries.pending(session)), running, places(session, types, now), full_holders(session)

        (runs, running, elsewhere, holders), load = await self._db.read(read), await self.load()
        result = []
        for position, run in enumerate(runs, start=1):
            if run.inherited:
                why = HELD
            elif run.waiting_since is not None and run.not_before is not None and run.not_before > now:
                why = f"it waits for {run.waiting_for}" if run.waiting_for else "its calls wait for the provider's batch"
            elif hold is not None:
                why = hold.sentence
            elif run.not_before is not None and run.not_before > now:
                seconds = (run.not_before - now).total_seconds()
                why = f"attempt {run.attempt} ended ({run.reason}); the next one starts in {seconds:.0f} s"
            elif capacity is None:
                why = "the engine has not answered yet"
            elif run.instance_type not in self._settings.instance_types:
                why = f"its instance type {run.instance_type} is no longer in the settings"
            elif (full := kind_is_full(self._settings.kind_limits, running, run.kind)) is not None:
                why = full
            elif (held := holders.why(run.workspace_id, run.user_id)) is not None:
                why = held
            elif run.provider in (None, LOCAL) and (refused := self._refusals.why(run.instance_type)) is not None:
                why = refused
            else:
                everywhere = [Place(LOCAL, capacity, load), *elsewhere]
                why = why_nowhere(everywhere, types[run.instance_type], run.provider) or "it starts at once"
            result.append(Waiting(run, why, None if hold or run.inherited else position))
        return result

    async def containers(self) -> list[tuple[ContainerFacts, ContainerStats | None]]:
        """Live containers with the kernel's figures; empty while the engine does not answer."""
        try:
            facts = await self._engine.list()
            rows = await self._db.read(run_queries.unremoved_attempts)
            seen = await self._db.read(lambda s: run_queries.visible(s, {row.run_id for row in rows}))
            owners = {row.container_name: (row.run_id, row.number) for row in rows}
            found = []
            for listed in facts:
                run_id, attempt = owners.get(listed.name, (None, None))
                fact = replace(listed, run_id=run_id, attempt=attempt)
                if run_id is not None and run_id not in seen:
                    fact = replace(listed, name=ELSEWHERE, run_id=None, attempt=None, detail=None)
                running = fact.state in (ContainerState.RUNNING, ContainerState.PAUSED)
                found.append((fact, await self._engine.stats(listed.name) if running else None))
            return found
        except EngineError:
            return []

    def _disk_trouble(self) -> str | None:
        limits = (self._settings.min_free_disk_bytes, self._settings.min_free_disk_share)
        folders = [self._data_dir, *([self.info.folder] if self.info and self.info.folder else [])]
        troubles = (DiskRoom(folder, *limits).trouble() for folder in folders)
        return next((trouble for trouble in troubles if trouble is not None), None)

    def _disk_hold(self) -> Hold | None:
        if (trouble := self._disk_trouble()) is None:
            return None
        return Hold(
            f"{trouble[:1].upper()}{trouble[1:]}; no new run starts until there is room. Runs that are under way go on."
        )
