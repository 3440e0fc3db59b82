"""The fleet and its agents as shown by the REST API and the page."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from sqlmodel import Session

from orchestrator.engines.engine import ENDED
from orchestrator.engines.launch_rules import disk_sentence, scratch_bytes
from orchestrator.fleet import queries as agent_queries
from orchestrator.fleet.agent_schemas import AgentOut
from orchestrator.fleet.schemas import (
    CapacityOut,
    ClusterMachineOut,
    ContainerOut,
    EngineOut,
    FleetOut,
    InstanceTypeOut,
    LastHourOut,
    PoolOut,
    WaitingOut,
)
from orchestrator.http.context import Services
from orchestrator.runs.reports.machine_cost import signs
from orchestrator.runs.scheduling.capacity import never_fits
from orchestrator.runs.scheduling.remote import SILENT_S


async def fleet_view(context: Services) -> FleetOut:
    fleet, settings = context.fleet, context.settings
    capacity, load, hold = fleet.capacity(), await fleet.load(), fleet.hold()
    types, counts = [], await fleet.counts()
    for name in settings.instance_types:
        kind = settings.instance_type(name)
        why = never_fits(capacity, kind) if capacity else None
        types.append(
            InstanceTypeOut(
                name=name,
                vcpu=kind.vcpu,
                memory_bytes=kind.memory_bytes,
                disk_bytes=kind.disk_bytes,
                scratch_bytes=scratch_bytes(kind, fleet.info.disk_limit) if fleet.info else None,
                fits=why is None,
                why_not=why,
                default=name == settings.default_instance_type,
                max_instances=kind.max_instances,
                in_use=counts[name].in_use,
                ready=counts[name].ready,
                starting=counts[name].starting,
            )
        )
    listed = await fleet.containers()
    containers = [
        ContainerOut(
            name=fact.name,
            run_id=fact.run_id,
            attempt=fact.attempt,
            instance_type=fact.instance_type,
            state=fact.state.value,
            machine=fact.machine,
            detail=fact.detail,
            cpu_s=stats.cpu_s if stats else None,
            memory_bytes=stats.memory_bytes if stats else None,
            memory_limit_bytes=stats.memory_limit_bytes if stats else None,
        )
        for fact, stats in listed
    ]
    placed = Counter(fact.machine for fact, _ in listed if fact.state not in ENDED)
    info, waiting, hour = fleet.info, await fleet.waiting(), await fleet.last_hour()
    now = context.clock.now()
    oldest_s = max(((now - row.run.created_at).total_seconds() for row in waiting), default=0.0)
    return FleetOut(
        engine=EngineOut(
            name=fleet.engine_name,
            reachable=fleet.error is None and info is not None,
            version=info.version if info else None,
            isolation=info.isolation if info else None,
            less_isolated=info.less_isolated if info else False,
            disk=disk_sentence(info.disk_limit) if info else None,
            error=fleet.error,
        ),
        capacity=CapacityOut(
            max_instances=settings.max_instances,
            vcpu=capacity.vcpu if capacity else None,
            memory_bytes=capacity.memory_bytes if capacity else None,
            used_instances=load.instances,
            used_vcpu=load.vcpu,
            used_memory_bytes=load.memory_bytes,
        ),
        instance_types=types,
        containers=containers,
        machines=[
            ClusterMachineOut(
                name=machine.name,
                ready=machine.ready,
                vcpu=machine.cpus,
                memory_bytes=machine.memory_bytes,
                containers=placed[machine.name],
                detail=machine.detail,
            )
            for machine in (info.machines if info else ())
        ],
        machines_hidden=info.machines_hidden if info else None,
        pools=[
            PoolOut(
                instance_type=pool.instance_type,
                warm=pool.warm,
                ready=pool.ready,
                starting=pool.starting,
                sleep_after_s=pool.sleep_after_s,
                trouble=context.pool.trouble.get(pool.instance_type),
            )
            for pool in await fleet.pools()
        ],
        waiting=[
            WaitingOut(
                run_id=row.run.id,
                instance_type=row.run.instance_type,
                priority=row.run.priority,
                since=row.run.created_at,
                not_before=row.run.not_before,
                why=row.why,
            )
            for row in waiting
        ],
        signs=signs(hour, oldest_s),
        last_hour=LastHourOut(
            starts=hour.starts,
            refused=hour.refused,
            mean_wait_s=hour.mean_wait_s,
            longest_wait_s=hour.longest_wait_s,
            held_share=hour.held_share,
        ),
        banner=hold.sentence if hold else None,
        leader=context.loops.leads,
    )


async def agents_view(context: Services) -> list[AgentOut]:
    """The known agents and what they run."""
    limit = context.clock.now() - timedelta(seconds=SILENT_S)

    def read(session: Session) -> list[AgentOut]:
        return [
            AgentOut(
                **agent.model_dump(exclude={"door_url"}),
                running=[row.run_id for _, row in agent_queries.living_attempts(session, agent.id)],
                connected=agent.seen_at > limit,
            )
            for agent in agent_queries.every(session)
        ]

    return await context.db.read(read)
