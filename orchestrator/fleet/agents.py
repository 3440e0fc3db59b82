"""Other machines: what they are given to start, and what they say of their containers.

An agent asks and reports; nothing connects to it. The dispatcher decides what it is given, as for our own engine. What it
says of a container's end is believed, as an engine is; that a result came from the right runner is held by its token.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.engines.engine import ContainerState, InstanceType
from orchestrator.errors import NotFound
from orchestrator.fleet import queries as agent_queries
from orchestrator.fleet.tables import Agent
from orchestrator.fleet.wake_ups import Bells
from orchestrator.runs import queries as run_queries
from orchestrator.runs.plan import guest_image, sandbox_slots
from orchestrator.runs.reports.machine_cost import last_reading
from orchestrator.runs.scheduling.capacity import type_or_largest
from orchestrator.runs.scheduling.remote import REMOTE, SILENT_S, last_said
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, token_hash
from runner.contract.run_spec import BootConfig

LOOK_S = 1.0


@dataclass(frozen=True)
class Introduction:
    """What an agent says of itself with every request for work."""

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
class Said:
    """What an agent reports of one container."""

    name: str
    ended: bool
    fetching: bool = False
    """Its image is on the way: there is no container yet, and that is no fault."""
    gone: bool = False
    """It ran, and somebody has removed it."""
    exit_code: int | None = None
    oom_killed: bool = False
    container_id: str | None = None
    detail: str | None = None
    log_tail: str = ""


@dataclass(frozen=True)
class Dismissed:
    """The agent must leave; it has nothing left."""


class Agents:
    def __init__(
        self, db: Database, clock: Clock, types: Mapping[str, InstanceType], bells: Bells, *, start_timeout_s: float
    ) -> None:
        self._db = db
        self._clock = clock
        self._types = types
        self._bells = bells
        self._start_timeout = timedelta(seconds=start_timeout_s)

    async def claim(self, who: Introduction, known: set[str], hold_s: float) -> Order | Dismissed | None:
        """The next container to start; None if it must ask again. `known` are the containers that it has already."""
        until = self._clock.monotonic() + hold_s
        with self._bells.hung(who.id) as bell:
            while True:
                found = await self._db.write(lambda session: self._next(session, who, known))
                left = until - self._clock.monotonic()
                if found is not None or left <= 0:
                    return found
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, LOOK_S)):
                        await bell.wait()
                bell.clear()

    async def report(self, agent_id: str, said: Sequence[Said]) -> list[str]:
        """Store what was said; the names of containers that must be stopped."""
        now = self._clock.now()

        def work(session: Session) -> list[str]:
            agent = agent_queries.lock(session, agent_id)
            if agent is None:
                raise NotFound(f"no agent {agent_id}: it must introduce itself first, by asking for work")
            agent.seen_at = now
            session.add(agent)
            stop = []
            for each in said:
                row = agent_queries.attempt_by_name(session, agent_id, each.name)
                if row is not None and each.ended:
                    _note(row, each, now)
                    session.add(row)
                elif not each.ended and (row is None or _must_stop(session, row)):
                    stop.append(each.name)
                elif row is not None and each.fetching:
                    run_queries.put_off_start(session, row.run_id, row.number, now + self._start_timeout)
            return stop

        return await self._db.write(work)

    async def dismiss(self, agent_id: str) -> None:
        """Tell an agent to leave; it finishes what it has. One that is silent is forgotten at once."""
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
        fields: dict[str, Any] = {
            "name": who.name,
            "provider": who.provider,
            "engine": who.engine,
            "instance_types": list(who.instance_types),
            "max_at_once": who.max_at_once,
            "vcpu": who.vcpu,
            "memory_bytes": who.memory_bytes,
            "door_url": who.door_url,
            "seen_at": now,
        }
        if agent is None:
            agent = Agent(id=who.id, created_at=now, **fields)
        for key, value in fields.items():
            setattr(agent, key, value)
        session.add(agent)
        waiting = agent_queries.living_attempts(session, who.id)
        for run, row in waiting:
            said = last_said(row)
            ended = said is not None and said.state is ContainerState.EXITED
            due = run.status == "starting" and run.attempt == row.number and not ended
            if due and row.container_name not in known:
                return self._order(session, agent, run, row, now)
        if agent.leaving and not waiting:
            session.delete(agent)
            return Dismissed()
        return None

    def _order(self, session: Session, agent: Agent, run: ContainerRun, listed: Attempt, now: datetime) -> Order:
        """With a new token each time: an order that was lost on its way is given again."""
        row = run_queries.lock_attempt(session, listed.run_id, listed.number) or listed
        token = new_token()
        row.token_hash, row.launched_at = token_hash(token), now
        row.facts = {**row.facts, "door": agent.door_url, "agent": agent.name}
        session.add(row)
        kind = type_or_largest(self._types, row.instance_type)
        boot = BootConfig(orchestrator_url=agent.door_url, token=token, instance_type=kind.name, engine=agent.engine)
        return Order(row.container_name, run.id, row.number, kind, sandbox_slots(kind), boot, guest_image(run))


def _note(row: Attempt, said: Said, now: datetime) -> None:
    row.exit_code, row.oom_killed = said.exit_code, said.oom_killed
    row.container_id = said.container_id or row.container_id
    row.log_tail = said.log_tail.replace("\x00", "") or row.log_tail
    row.detail = row.detail or said.detail
    if (last := last_reading(said.log_tail)) is not None:
        row.vcpu_s = max(row.vcpu_s, last.vcpu_s)
    row.facts = {
        **row.facts,
        REMOTE: {"ended": True, "at": now.isoformat(), "refused": said.detail is not None, "gone": said.gone},
    }


def _must_stop(session: Session, row: Attempt) -> bool:
    run = run_queries.get(session, row.run_id)
    return run is None or row.token_hash is None or run.attempt != row.number or run.desired == "cancel"
