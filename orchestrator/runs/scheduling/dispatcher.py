"""Starts pending runs while there is capacity, with a runner of the warm pool or a new container.

The database comes before the engine: one transaction takes the row (`starting`, next attempt, new token), and then, outside
any transaction, the engine launches the container. The reconciler handles everything that the engine reports later; only a
plain refusal of the launch is recorded here.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.engines.engine import (
    Engine,
    EngineError,
    EngineUnreachable,
    ImageMissing,
    InstanceType,
    LaunchRequest,
    NameTaken,
    NoRoom,
)
from orchestrator.jobs import queries as job_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import AttemptEnded, Dispatched, Status, backoff
from orchestrator.runs.queueing.plan import free_uid_base, guest_image, sandbox_slots
from orchestrator.runs.reasons import Reason
from orchestrator.runs.scheduling import remote as agents
from orchestrator.runs.scheduling.capacity import LOCAL, Capacity, Load, Place, choose, kind_is_full, type_or_largest
from orchestrator.runs.scheduling.holder_limits import full_holders
from orchestrator.runs.scheduling.launches import LaunchesInFlight
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.runs.scheduling.room_refusals import RoomRefusals
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.runs.transitions import advance, put_back
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.runs.warm_pool.hand_off import WarmClaim, WarmHandOff, count_idle_time
from orchestrator.runs.warm_pool.pool import Pool
from orchestrator.runs.warm_pool.tables import WarmRunner
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, token_hash
from runner.contract.run_spec import GUEST_KINDS, BootConfig, RunKind

log = structlog.get_logger()

LATE_S = 3600
"""How long after its run's deadline an engine may end a container by itself, if everybody else has failed to."""
READY_TIMEOUT_S = 30.0
"""Start timeout for a warm runner. It polls continuously, so one that does not claim its run in this time is lost."""


@dataclass(frozen=True)
class LaunchPolicy:
    """The settings that the dispatcher needs to start containers."""

    instance_types: dict[str, InstanceType]
    image: str
    orchestrator_url: Callable[[], str]
    start_timeout_s: float
    parallel_launches: int
    kind_limits: Mapping[RunKind, int] = field(default_factory=dict)
    """The maximum number of concurrent containers of each limited kind."""
    uid_shift: int = 0


@dataclass(frozen=True)
class Dispatch:
    """A run with its new attempt, for a warm runner, for an agent, or for a container that we launch ourselves."""

    run: ContainerRun
    attempt: Attempt
    more: bool
    """Whether other runs were due too. If not, the round can end: queueing a run wakes the loops."""
    ready: str | None = None
    """The token hash of the warm runner; `warm_claim` is its response if this process holds its request."""
    warm_claim: WarmClaim | None = None
    agent_id: str | None = None
    guest: str | None = None
    """The user's image, for a command."""


@dataclass(frozen=True)
class Hold:
    """Why nothing at all can start now; shown as a banner."""

    sentence: str


class Dispatcher:
    def __init__(
        self,
        db: Database,
        leadership: Leadership,
        engine: Engine,
        clock: Clock,
        policy: LaunchPolicy,
        pool: Pool,
        hand_off: WarmHandOff,
        *,
        ring: Callable[[str], None],
        capacity: Callable[[], Capacity | None],
        hold: Callable[[], Hold | None],
        rng: random.Random,
        refusals: RoomRefusals | None = None,
    ) -> None:
        self._db = db
        self._leadership = leadership
        self._engine = engine
        self._clock = clock
        self._policy = policy
        self._pool = pool
        self._hand_off = hand_off
        self._ring = ring
        self._capacity = capacity
        self._hold = hold
        self._rng = rng
        self._refusals = refusals or RoomRefusals(clock)
        self._slots = asyncio.Semaphore(policy.parallel_launches)
        self._guest_slots = asyncio.Semaphore(policy.parallel_launches)
        """A separate limit, so that no other launch waits while a user's image is pulled."""
        self.launching = LaunchesInFlight()

    async def round(self) -> int:
        """Start the runs that fit; returns how many were taken."""
        capacity = self._capacity()
        if capacity is None or self._hold() is not None or self._leadership.epoch is None:
            return 0
        now = self._clock.now()
        if not await self._db.read(lambda session: run_queries.anything_due(session, now)):
            return 0  # at rest nothing is written
        taken = 0
        more = True
        while more and (found := await self._take_one(capacity)) is not None:
            taken, more = taken + 1, found.more
            log.info("dispatch", action="dispatch", container=found.attempt.container_name)
        return taken

    async def close(self) -> None:
        await self.launching.close()

    async def _take_one(self, capacity: Capacity) -> Dispatch | None:
        now = self._clock.now()
        token = new_token()

        def take(session: Session) -> Dispatch | None:
            places: list[Place] = []
            leaving = False
            running = job_queries.holding_by_kind(session)
            full = [kind for kind in self._policy.kind_limits if kind_is_full(self._policy.kind_limits, running, kind)]
            held = full_holders(session)
            due = run_queries.due(session, now, 50, without=full, full_workspaces=held.workspaces, full_users=held.users)
            for candidate in due:
                wanted = self._type(candidate.instance_type)
                here = candidate.provider in (None, LOCAL)
                ready_fits = here and candidate.kind not in GUEST_KINDS  # those need another image
                if ready_fits and (ready := self._pool.pick(session, candidate)) is not None:
                    return self._dispatch(session, candidate.id, token, ready=ready, more=len(due) > 1)
                if not places:
                    places = [self._here(session, capacity), *agents.places(session, self._policy.instance_types, now)]
                open_places = places if self._refusals.may_try(wanted.name) else places[1:]
                if (place := choose(open_places, wanted, candidate.provider)) is not None:
                    return self._dispatch(session, candidate.id, token, agent=place.agent, more=len(due) > 1)
                leaving = leaving or (here and self._pool.make_room(session, capacity, places[0].load, wanted))
            return None

        found = await self._leadership.write(take)
        if found is None:
            return None
        run, attempt = found.run, found.attempt
        if found.ready is not None:
            self._hand_off.deliver(found.ready, found.warm_claim)
            return found
        if found.agent_id is not None:
            self._ring(found.agent_id)
            return found
        self._refusals.tried(self._type(run.instance_type).name)
        work = self._launch(run, attempt, token, found.guest)
        self.launching.begin(attempt.container_name, work, long=found.guest is not None)
        return found

    def _here(self, session: Session, capacity: Capacity) -> Place:
        """Our own engine with its current load."""
        held = [self._type(row.instance_type) for row in agents.held_here(session)]
        return Place(LOCAL, capacity, Load.of(held + self._pool.held(session)))

    def _dispatch(
        self,
        session: Session,
        run_id: str,
        token: str,
        *,
        more: bool,
        ready: WarmRunner | None = None,
        agent: str | None = None,
    ) -> Dispatch | None:
        now = self._clock.now()
        run = run_queries.lock(session, run_id)
        if run is None or run.status != Status.PENDING:
            return None
        timeout_s = self._policy.start_timeout_s if ready is None else min(READY_TIMEOUT_S, self._policy.start_timeout_s)
        deadline = now + timedelta(seconds=timeout_s)
        advance(session, run, Dispatched(now, deadline, run.items_done), now)
        attempt = Attempt(
            run_id=run.id,
            number=run.attempt,
            token_hash=token_hash(token),
            engine=self._engine.name if agent is None else agents.AGENT_ENGINE,
            agent_id=agent,
            instance_type=run.instance_type,
            container_name=f"benchyard-run-{run.id}-a{run.attempt}" if ready is None else ready.container_name,
            container_id=ready.container_id if ready else None,
            sandbox_uid_base=self._free_uids(session) if ready is None else ready.sandbox_uid_base,
            dispatched_at=now,
            launched_at=ready.created_at if ready else None,
            facts={"stood_ready": True} if ready else {},
        )
        session.add(attempt)
        if ready is not None:
            count_idle_time(session, ready, now)
            ready.run_id, ready.attempt = run.id, run.attempt
            session.add(ready)
            warm_claim = self._hand_off.claimed(session, ready, run, attempt, token, now)
            return Dispatch(run, attempt, more, ready=ready.token_hash, warm_claim=warm_claim)
        return Dispatch(run, attempt, more, agent_id=agent, guest=guest_image(run))

    def _free_uids(self, session: Session) -> int:
        ready = {row.sandbox_uid_base for row in pool_queries.waiting(session)}
        return free_uid_base(ready | run_queries.used_uid_bases(session), self._policy.uid_shift)

    def _type(self, name: str) -> InstanceType:
        return type_or_largest(self._policy.instance_types, name)

    async def _launch(self, run: ContainerRun, attempt: Attempt, token: str, guest: str | None) -> None:
        instance_type = self._type(run.instance_type)
        boot = BootConfig(
            orchestrator_url=self._policy.orchestrator_url(),
            token=token,
            instance_type=instance_type.name,
            engine=self._engine.name,
        )
        request = LaunchRequest(
            name=attempt.container_name,
            run_id=run.id,
            attempt=attempt.number,
            instance_type=instance_type,
            image=self._policy.image,
            boot_line=boot.model_dump_json().encode() + b"\n",
            sandbox_slots=sandbox_slots(instance_type),
            guest=guest,
            longest_s=run.deadline_s + LATE_S,
        )
        bound = log.bind(run_id=run.id, attempt=attempt.number)
        try:
            try:
                async with self._slots if guest is None else self._guest_slots:
                    facts = await self._engine.launch(request)
            except EngineUnreachable as error:
                bound.warning("launch unanswered", action="launch_unanswered", error=str(error))
                return
            except NoRoom as error:
                bound.info("no room", action="launch_no_room", error=str(error))
                self._refusals.refused(instance_type.name, str(error))
                words = str(error)
                await self._leadership.write(lambda s: put_back(s, run.id, attempt.number, words, self._clock.now()))
                return
            except EngineError as error:
                bound.warning("launch refused", action="launch_refused", error=str(error))
                if (hold := self._hold()) is not None:  # such as a disk that has just filled up: not the run's fault
                    words = hold.sentence
                    await self._leadership.write(lambda s: put_back(s, run.id, attempt.number, words, self._clock.now()))
                    return
                await self._refused(run.id, attempt, error)
                return
            self._refusals.accepted(instance_type.name)
            now = self._clock.now()

            def launched(session: Session) -> None:
                row = run_queries.lock_attempt(session, run.id, attempt.number)
                if row is not None:
                    row.container_id, row.launched_at = facts.container_id, now
                    session.add(row)
                if guest is not None:  # pulling the image may have taken longer than the start timeout
                    run_queries.put_off_start(
                        session, run.id, attempt.number, now + timedelta(seconds=self._policy.start_timeout_s)
                    )

            await self._db.write(launched)
        except (DatabaseUnavailable, LeadershipLost) as error:
            bound.warning("launch not recorded", action="launch_unrecorded", error=str(error))

    async def _refused(self, run_id: str, attempt: Attempt, error: EngineError) -> None:
        """End the attempt after the engine refused the launch, unless the container exists after all."""
        try:
            if not isinstance(error, NameTaken) and await self._engine.inspect(attempt.container_name) is not None:
                return
        except EngineError:
            return
        reason = Reason.ENGINE_ERROR
        if isinstance(error, ImageMissing):
            reason = Reason.IMAGE_MISSING
        elif isinstance(error, NameTaken):
            reason = Reason.NAME_TAKEN
        now = self._clock.now()
        jitter = self._rng.random()

        def end(session: Session) -> None:
            run = run_queries.lock(session, run_id)
            row = run_queries.lock_attempt(session, run_id, attempt.number)
            if run is None or row is None or run.attempt != attempt.number or run.status != Status.STARTING:
                return
            wait = backoff(run.attempts_without_progress + 1, jitter)
            advance(session, run, AttemptEnded(now, reason, f"{error}", run.items_done, wait), now)
            row.ended_at = row.removed_at = now
            row.reason, row.detail, row.token_hash = reason.value, str(error), None
            session.add(row)

        await self._leadership.write(end)
