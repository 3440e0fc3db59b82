"""Agents on other machines: which containers they start, and what they report.

An agent asks and reports; nothing connects to it. The dispatcher decides what it starts, as with our own engine. Its reports
of containers' ends are trusted, like an engine's; results are authenticated by the runner's own token.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.engines.engine import ContainerState, InstanceType
from orchestrator.errors import NotFound
from orchestrator.fleet import queries as agent_queries
from orchestrator.fleet.tables import Agent
from orchestrator.fleet.wake_ups import WakeUps
from orchestrator.runs import queries as run_queries
from orchestrator.runs.queueing.plan import guest_image, sandbox_slots
from orchestrator.runs.reports.machine_cost import last_reading
from orchestrator.runs.scheduling.capacity import type_or_largest
from orchestrator.runs.scheduling.remote import REMOTE, SILENT_S, last_report
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, token_hash
from runner.contract.run_spec import BootConfig

LOOK_S = 1.0


@dataclass(frozen=True)
class Introduction:
    """What an agent says about itself with every request for work."""

    id: str
    name: str
    provider: str
    engine: str
    instance_types: Sequence[str]
    max_at_once: int
    vcpu: float
    memory_bytes: int
    door_url: str


@dataclass(frozen=True)
class Order:
    """One container to start."""

    name: str
    run_id: str
    attempt: int
    instance_type: InstanceType
    sandbox_slots: int
    boot: BootConfig
    guest: str | None = None


@dataclass(frozen=True)
class ContainerReport:
    """What an agent reports about one container."""

    name: str
    ended: bool
    fetching: bool = False
    """Its image is being pulled: there is no container yet, which is no failure."""
    gone: bool = False
    """It ran, and somebody has removed it."""
    exit_code: int | None = None
    oom_killed: bool = False
    container_id: str | None = None
    detail: str | None = None
    log_tail: str = ""


@dataclass(frozen=True)
class Dismissed:
    """The agent must leave; it has no containers left."""


class Agents:
    def __init__(
        self, db: Database, clock: Clock, types: Mapping[str, InstanceType], wake_ups: WakeUps, *, start_timeout_s: float
    ) -> None:
        self._db = db
        self._clock = clock
        self._types = types
        self._wake_ups = wake_ups
        self._start_timeout = timedelta(seconds=start_timeout_s)

    async def claim(self, who: Introduction, known: set[str], hold_s: float) -> Order | Dismissed | None:
        """The next container to start; None if the agent must ask again. `known` are the containers it already has."""
        until = self._clock.monotonic() + hold_s
        with self._wake_ups.waiting(who.id) as woken:
            while True:
                answer = await self._db.write(lambda session: self._next(session, who, known))
                left = until - self._clock.monotonic()
                if answer is not None or left <= 0:
                    return answer
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, LOOK_S)):
                        await woken.wait()
                woken.clear()

    async def report(self, agent_id: str, reports: Sequence[ContainerReport]) -> list[str]:
        """Store the reports. Returns the names of containers to stop."""
        now = self._clock.now()

        def work(session: Session) -> list[str]:
            agent = agent_queries.lock(session, agent_id)
            if agent is None:
                raise NotFound(f"no agent {agent_id}: it must introduce itself first, by asking for work")
            agent.seen_at = now
            session.add(agent)
            stop = []
            for container in reports:
                row = agent_queries.attempt_by_name(session, agent_id, container.name)
                if row is not None and container.ended:
                    _record_end(row, container, now)
                    session.add(row)
                elif not container.ended and (row is None or _must_stop(session, row)):
                    stop.append(container.name)
                elif row is not None and container.fetching:
                    run_queries.put_off_start(session, row.run_id, row.number, now + self._start_timeout)
            return stop

        return await self._db.write(work)

    async def dismiss(self, agent_id: str) -> None:
        """Tell an agent to leave after finishing its work. A silent agent is deleted at once."""
        now = self._clock.now()

        def work(session: Session) -> None:
            agent = agent_queries.lock(session, agent_id)
            if agent is None:
                raise NotFound(f"no agent {agent_id}; GET /api/agents lists them")
            if agent.seen_at < now - timedelta(seconds=SILENT_S):
                session.delete(agent)
            else:
                agent.leaving = True
                session.add(agent)

        await self._db.write(work)

    def _next(self, session: Session, who: Introduction, known: set[str]) -> Order | Dismissed | None:
        now = self._clock.now()
        agent = agent_queries.lock(session, who.id)
        fields = {**asdict(who), "instance_types": list(who.instance_types), "seen_at": now}
        if agent is None:
            agent = Agent(created_at=now, **fields)
        for key, value in fields.items():
            setattr(agent, key, value)
        session.add(agent)
        waiting = agent_queries.living_attempts(session, who.id)
        for run, row in waiting:
            facts = last_report(row)
            ended = facts is not None and facts.state is ContainerState.EXITED
            due = run.status == "starting" and run.attempt == row.number and not ended
            if due and row.container_name not in known:
                return self._order(session, agent, run, row, now)
        if agent.leaving and not waiting:
            session.delete(agent)
            return Dismissed()
        return None

    def _order(self, session: Session, agent: Agent, run: ContainerRun, listed: Attempt, now: datetime) -> Order:
        """Creates a new token each time, so that an order lost in transit can be given again."""
        row = run_queries.lock_attempt(session, listed.run_id, listed.number) or listed
        token = new_token()
        row.token_hash, row.launched_at = token_hash(token), now
        row.facts = {**row.facts, "door": agent.door_url, "agent": agent.name}
        session.add(row)
        kind = type_or_largest(self._types, row.instance_type)
        boot = BootConfig(orchestrator_url=agent.door_url, token=token, instance_type=kind.name, engine=agent.engine)
        return Order(row.container_name, run.id, row.number, kind, sandbox_slots(kind), boot, guest_image(run))


def _record_end(row: Attempt, report: ContainerReport, now: datetime) -> None:
    row.exit_code, row.oom_killed = report.exit_code, report.oom_killed
    row.container_id = report.container_id or row.container_id
    row.log_tail = report.log_tail.replace("\x00", "") or row.log_tail
    row.detail = row.detail or report.detail
    if (last := last_reading(report.log_tail)) is not None:
        row.vcpu_s = max(row.vcpu_s, last.vcpu_s)
    row.facts = {
        **row.facts,
        REMOTE: {"ended": True, "at": now.isoformat(), "refused": report.detail is not None, "gone": report.gone},
    }


def _must_stop(session: Session, row: Attempt) -> bool:
    run = run_queries.get(session, row.run_id)
    return run is None or row.token_hash is None or run.attempt != row.number or run.desired == "cancel"
