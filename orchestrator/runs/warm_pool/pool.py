"""The warm pool: runners started ahead, with everything imported and the sandbox up, each for exactly one run.

The rows are the pool. `fill` starts missing runners, and `tend` replaces unhealthy ones and removes idle ones. The
dispatcher takes a runner for a run; the runner, which polls continuously, receives that run as the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.engines.engine import (
    ENDED,
    ContainerFacts,
    ContainerState,
    Engine,
    EngineError,
    InstanceType,
    LaunchRequest,
)
from orchestrator.runs import queries as run_queries
from orchestrator.runs.queueing.plan import free_uid_base, sandbox_slots
from orchestrator.runs.scheduling.capacity import LOCAL, Capacity, Load, type_or_largest, why_not
from orchestrator.runs.scheduling.launches import LaunchesInFlight
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.runs.scheduling.remote import held_here
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.runs.warm_pool.hand_off import count_idle_time
from orchestrator.runs.warm_pool.policy import DEMAND_S, PoolLimits, PoolSize, to_retire, unwell, wanted
from orchestrator.runs.warm_pool.tables import WarmRunner
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, token_hash, uuid7
from runner.contract.run_spec import GUEST_KINDS, BootConfig, StandReady

log = structlog.get_logger()

NAME = "benchyard-warm-"
LOG_TAIL_BYTES = 4096
MAX_PAUSE_S = 60.0


@dataclass(frozen=True)
class PoolPolicy:
    sizes: Mapping[str, PoolSize]
    instance_types: Mapping[str, InstanceType]
    image: str
    orchestrator_url: Callable[[], str]
    limits: PoolLimits
    uid_shift: int = 0


class Pool:
    def __init__(
        self,
        db: Database,
        leadership: Leadership,
        engine: Engine,
        clock: Clock,
        policy: PoolPolicy,
        *,
        capacity: Callable[[], Capacity | None],
        look: Callable[[], None],
    ) -> None:
        self._db = db
        self._leadership = leadership
        self._engine = engine
        self._clock = clock
        self._policy = policy
        self._capacity = capacity
        self._look = look
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self.launching = LaunchesInFlight()
        self.trouble: dict[str, str] = {}
        """The error of each instance type whose last runner did not start."""

    # -- called by the dispatcher, within its transaction

    def pick(self, session: Session, run: ContainerRun) -> WarmRunner | None:
        """A warm runner of this run's instance type that has asked recently."""
        lately = self._clock.now() - timedelta(seconds=self._policy.limits.silent_s)
        for row in pool_queries.waiting(session):
            ready = row.seen_at is not None and row.seen_at > lately and row.retired is None
            if ready and row.instance_type == run.instance_type and row.epoch == self._leadership.epoch:
                return row
        return None

    def held(self, session: Session) -> list[InstanceType]:
        """The instance types that the pool's runners occupy."""
        return [self._type(row.instance_type) for row in pool_queries.waiting(session)]

    def make_room(self, session: Session, capacity: Capacity, load: Load, for_type: InstanceType) -> bool:
        """Retire idle runners if a run would then fit; returns whether any were retired."""
        idle = [row for row in pool_queries.waiting(session) if row.retired is None]
        room = load
        for place, row in enumerate(idle):
            room = room.minus(self._type(row.instance_type))
            if why_not(capacity, room, for_type) is None:
                for leaving in idle[: place + 1]:
                    leaving.retired = f"a run on {for_type.name} needs the room"
                    session.add(leaving)
                self._look()
                return True
        return False

    # -- called by the leader's loop

    async def tend(self, containers: Mapping[str, ContainerFacts], now: datetime) -> set[str]:
        """Replace unhealthy runners and remove idle ones; returns the container names that belong to the pool."""
        rows = await self._db.read(pool_queries.waiting)
        names = {row.container_name for row in rows}
        by_type: dict[str, list[WarmRunner]] = {}
        for row in rows:
            by_type.setdefault(row.instance_type, []).append(row)
        sizes = self._policy.sizes
        groups = [(sizes.get(name, PoolSize()), group) for name, group in by_type.items()]
        asleep = {row.id for size, group in groups for row in to_retire(group, size, now)}
        for row in rows:
            if row.container_name not in self.launching:
                fact = containers.get(row.container_name)
                why = "it is not needed" if row.id in asleep else unwell(row, fact, self._policy.limits, now)
                if row.epoch != self._leadership.epoch:
                    why = "another orchestrator started it"
                await self._judge(row, fact, why)
        await self._forget(await self._db.read(pool_queries.taken_from))
        return names

    async def fill(self, *, held: bool = False) -> None:
        """Start missing runners if there is room and no run waits for it. Does nothing while all starts are on hold."""
        capacity, now = self._capacity(), self._clock.now()
        epoch = self._leadership.epoch
        types = [name for name, size in self._policy.sizes.items() if size.warm and self._may_start(name)]
        if held or capacity is None or epoch is None or not types:
            return

        def add(session: Session) -> list[tuple[WarmRunner, str]]:
            if any(run.provider in (None, LOCAL) for run in run_queries.due(session, now, limit=50)):
                return []
            rows = pool_queries.waiting(session)
            held = [self._type(row.instance_type) for row in held_here(session)]
            load = Load.of(held + self.held(session))
            used = {row.sandbox_uid_base for row in rows} | run_queries.used_uid_bases(session)
            lately = now - timedelta(seconds=DEMAND_S)
            started = pool_queries.started_since(session, lately, without=GUEST_KINDS)  # no warm runner can serve those
            made = []
            for name in types:
                there = sum(row.instance_type == name for row in rows)
                missing = wanted(self._policy.sizes[name], started.get(name, 0)) - there
                while missing > 0 and why_not(capacity, load, self._type(name)) is None:
                    row, token = self._new(name, now, epoch, used)
                    session.add(row)
                    made.append((row, token))
                    load, missing = load.plus(self._type(name)), missing - 1
                    used.add(row.sandbox_uid_base)
            return made

        for row, token in await self._leadership.write(add):
            self.launching.begin(row.container_name, self._launch(row, token))

    async def close(self) -> None:
        """Remove the warm runners: nobody would give them a run."""
        await self.launching.close()
        if self._leadership.epoch is None:
            return
        with suppress(EngineError, DatabaseUnavailable, LeadershipLost):
            for row in await self._db.read(pool_queries.waiting):
                await self._judge(row, None, "the service stops")

    def _new(self, name: str, now: datetime, epoch: int, used: set[int]) -> tuple[WarmRunner, str]:
        warm_id, token = uuid7(now), new_token()
        row = WarmRunner(
            id=warm_id,
            container_name=NAME + warm_id,
            token_hash=token_hash(token),
            engine=self._engine.name,
            instance_type=name,
            sandbox_uid_base=free_uid_base(used, self._policy.uid_shift),
            epoch=epoch,
            created_at=now,
        )
        return row, token

    async def _launch(self, row: WarmRunner, token: str) -> None:
        kind = self._type(row.instance_type)
        slots = sandbox_slots(kind)
        boot = BootConfig(
            orchestrator_url=self._policy.orchestrator_url(),
            token=token,
            instance_type=kind.name,
            engine=self._engine.name,
            stand_ready=StandReady(sandbox_slots=slots, sandbox_uid_base=row.sandbox_uid_base),
        )
        line = boot.model_dump_json().encode() + b"\n"
        request = LaunchRequest(row.container_name, row.id, 0, kind, self._policy.image, line, slots)
        try:
            facts = await self._engine.launch(request)

            def launched(session: Session) -> None:
                current = pool_queries.lock(session, row.id)
                if current is not None:
                    current.container_id = facts.container_id
                    session.add(current)

            await self._db.write(launched)
        except EngineError as error:
            self._failed(row.instance_type, str(error))
        except (DatabaseUnavailable, LeadershipLost) as error:
            log.warning("warm launch not recorded", action="pool_unrecorded", error=str(error))

    async def _judge(self, row: WarmRunner, fact: ContainerFacts | None, why: str | None) -> None:
        if fact is None:
            fact = await self._engine.inspect(row.container_name)  # the list may be older than the launch
        ended = fact is None or fact.state in ENDED or fact.state in (ContainerState.CREATED, ContainerState.PAUSED)
        if why is None and not ended:
            return
        if not await self._withdraw(row.id):
            return  # a run has taken it meanwhile, and its attempt will notice
        if fact is not None:
            if ended and why is None:
                tail = await self._engine.logs(row.container_name, tail_bytes=LOG_TAIL_BYTES)
                self._failed(row.instance_type, f"it ended by itself: {tail.decode('utf-8', 'replace').strip()[-300:]}")
            await self._engine.remove(row.container_name)
        if row.seen_at is None and why is not None and row.retired is None:
            self._failed(row.instance_type, why)
        log.info("warm runner removed", action="pool_removed", container=row.container_name, why=why)
        await self._forget([row])

    async def _withdraw(self, warm_id: str) -> bool:
        """Make the runner unavailable to runs; returns False if a run already has it."""

        def work(session: Session) -> bool:
            row = pool_queries.lock(session, warm_id)
            if row is None or row.run_id is not None:
                return False
            row.retired = row.retired or "it is being removed"
            session.add(row)
            return True

        return await self._leadership.write(work)

    async def _forget(self, rows: Iterable[WarmRunner]) -> None:
        gone = [row.id for row in rows]
        now = self._clock.now()

        def work(session: Session) -> None:
            for warm_id in gone:
                if (row := pool_queries.lock(session, warm_id)) is not None:
                    if row.run_id is None:
                        count_idle_time(session, row, now)
                    session.delete(row)

        if gone:
            await self._leadership.write(work)

    def _type(self, name: str) -> InstanceType:
        return type_or_largest(self._policy.instance_types, name)

    def _failed(self, name: str, why: str) -> None:
        """Record a failed start. The wait before the next try doubles until one succeeds."""
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        self._not_before[name] = self._clock.monotonic() + min(MAX_PAUSE_S, 2.0**failures)
        self.trouble[name] = why
        log.warning("warm runner failed", action="pool_failed", instance_type=name, why=why)

    def came_up(self, name: str) -> None:
        self._failures.pop(name, None)
        self.trouble.pop(name, None)

    def _may_start(self, name: str) -> bool:
        return self._clock.monotonic() >= self._not_before.get(name, 0.0)
