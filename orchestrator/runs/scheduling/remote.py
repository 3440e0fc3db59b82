"""Attempts on other machines: which ones there are, where there is room, and what was last reported."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlmodel import Session

from orchestrator.engines.engine import ContainerFacts, ContainerState, InstanceType
from orchestrator.fleet import queries as agent_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.scheduling.capacity import Capacity, Load, Place, type_or_largest
from orchestrator.runs.tables import Attempt
from orchestrator.tasks.queries import TASK_ENGINE

SILENT_S = 60.0
"""An agent that was silent for this long has lost its containers."""
REMOTE = "remote"
AGENT_ENGINE = "agent"
"""The engine name for attempts on other machines; only the agent knows the actual engine."""


def held_here(session: Session) -> list[Attempt]:
    """The attempts that use capacity of our own engine."""
    return [row for row in run_queries.holding_attempts(session) if row.agent_id is None]


def places(session: Session, types: Mapping[str, InstanceType], now: datetime) -> list[Place]:
    """The connected agents with their load."""
    found: list[Place] = []
    for agent in agent_queries.seen_since(session, now - timedelta(seconds=SILENT_S / 2)):
        if agent.leaving or agent.engine == TASK_ENGINE:  # task runners claim their runs themselves
            continue
        held = [type_or_largest(types, row.instance_type) for _, row in agent_queries.living_attempts(session, agent.id)]
        capacity = Capacity(agent.max_at_once, agent.vcpu, agent.memory_bytes)
        found.append(Place(agent.provider, capacity, Load.of(held), agent.id, frozenset(agent.instance_types)))
    return found


def last_report(attempt: Attempt) -> ContainerFacts | None:
    """The container as its agent last described it; None before its first report."""
    report = attempt.facts.get(REMOTE)
    if not isinstance(report, dict):
        return None
    return ContainerFacts(
        name=attempt.container_name,
        container_id=attempt.container_id or "",
        state=ContainerState.EXITED if report.get("ended") else ContainerState.RUNNING,
        run_id=attempt.run_id,
        attempt=attempt.number,
        instance_type=attempt.instance_type,
        created_at=attempt.dispatched_at,
        exit_code=attempt.exit_code,
        oom_killed=attempt.oom_killed,
    )
