"""Assembles the parts that start runs, watch them and store what runners report."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.db.session import Database
from orchestrator.engines.engine import Engine
from orchestrator.evals.event_store import EvalEventStore
from orchestrator.fleet.agents import Agents
from orchestrator.fleet.wake_ups import WakeUps
from orchestrator.gateway.ledger import queries as call_queries
from orchestrator.installation.service import Installation
from orchestrator.retention.queries import deletion_of
from orchestrator.runs.intake.artefacts import ArtefactStore
from orchestrator.runs.intake.service import Intake
from orchestrator.runs.queueing.plan import PositionCache, uid_shift
from orchestrator.runs.scheduling.dispatcher import Dispatcher, Hold, LaunchPolicy
from orchestrator.runs.scheduling.endings import LeasePolicy
from orchestrator.runs.scheduling.fleet import Fleet
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.loops import Loops, Signals
from orchestrator.runs.scheduling.reconciler import Reconciler
from orchestrator.runs.scheduling.room_refusals import RoomRefusals
from orchestrator.runs.service import RunService
from orchestrator.runs.warm_pool.hand_off import WarmHandOff
from orchestrator.runs.warm_pool.policy import PoolLimits, PoolSize
from orchestrator.runs.warm_pool.pool import Pool, PoolPolicy
from orchestrator.serving.runner_listener import RunnerListener
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock

AT_ONCE_IN_CLUSTER = 16
"""A launch on a cluster costs this machine two requests; on one machine, it costs the machine itself."""


@dataclass(frozen=True)
class RunParts:
    service: RunService
    signals: Signals
    leadership: Leadership
    fleet: Fleet
    pool: Pool
    agents: Agents
    intake: Intake
    hand_off: WarmHandOff
    artefacts: ArtefactStore
    loops: Loops
    """Not started yet. Runners may call as soon as the loops run."""


@asynccontextmanager
async def open_runs(
    settings: Settings,
    db: Database,
    clock: Clock,
    engine: Engine,
    catalogue: Catalogue,
    installation: Installation,
    listener: RunnerListener,
    *,
    data_dir: Path,
    runner_url: Callable[[], str],
    positions: PositionCache,
    rng: random.Random,
) -> AsyncIterator[RunParts]:
    signals, wake_ups = Signals(), WakeUps()
    refusals = RoomRefusals(clock)
    fleet = Fleet(engine, db, settings, clock, data_dir, refusals)
    leadership = Leadership(db, clock, installation.name, settings.leader_lease_s)
    instance_types = {name: settings.instance_type(name) for name in settings.instance_types}
    shift = uid_shift(installation.owner)

    def hold() -> Hold | None:
        if (fleet_hold := fleet.hold()) is not None:
            return fleet_hold
        return None if listener.is_open else Hold(listener.error or "The address for runners is not open yet.")

    pool = Pool(
        db,
        leadership,
        engine,
        clock,
        PoolPolicy(
            sizes={name: PoolSize(*settings.pool(name)) for name in settings.instance_types},
            instance_types=instance_types,
            image=settings.runner_image,
            orchestrator_url=runner_url,
            limits=PoolLimits(
                settings.start_timeout_s,
                silent_s=settings.lease_s + settings.suspect_s,
                max_wait_s=settings.kube_max_wait_s,
            ),
            uid_shift=shift,
        ),
        capacity=fleet.capacity,
        look=signals.look,
    )
    intake = Intake(
        db,
        clock,
        lease_s=settings.lease_s,
        evals=EvalEventStore(),
        positions=positions,
        has_call=call_queries.has_settled,
    )
    hand_off = WarmHandOff(db, clock, intake, came_up=pool.came_up)
    dispatcher = Dispatcher(
        db,
        leadership,
        engine,
        clock,
        LaunchPolicy(
            instance_types=instance_types,
            image=settings.runner_image,
            orchestrator_url=runner_url,
            start_timeout_s=settings.start_timeout_s,
            parallel_launches=AT_ONCE_IN_CLUSTER if engine.name == "kubernetes" else 2 * (os.cpu_count() or 1),
            kind_limits=settings.kind_limits,
            uid_shift=shift,
        ),
        pool,
        hand_off,
        ring=wake_ups.wake,
        capacity=fleet.capacity,
        hold=hold,
        rng=rng,
        refusals=refusals,
    )
    reconciler = Reconciler(
        db,
        leadership,
        engine,
        clock,
        LeasePolicy(
            settings.lease_s,
            settings.suspect_s,
            settings.start_timeout_s,
            settings.reconcile_s,
            max_wait_s=settings.kube_max_wait_s,
        ),
        pool=pool,
        launching=dispatcher.launching,
        rng=rng,
        on_change=signals.wake,
    )
    service = RunService(db, catalogue, settings, clock, capacity=fleet.capacity, wake=signals.wake, deletion_of=deletion_of)
    loops = Loops(
        clock=clock,
        engine=engine,
        fleet=fleet,
        leadership=leadership,
        reconciler=reconciler,
        dispatcher=dispatcher,
        pool=pool,
        door=listener,
        signals=signals,
        interval_s=settings.reconcile_s,
        tidy=service.tidy,
    )
    artefacts = ArtefactStore(
        data_dir / "artefacts",
        db,
        clock,
        max_bytes=settings.max_artefact_bytes,
        run_bytes=settings.max_run_artefact_bytes,
    )
    agents = Agents(db, clock, instance_types, wake_ups, start_timeout_s=settings.start_timeout_s)
    try:
        yield RunParts(service, signals, leadership, fleet, pool, agents, intake, hand_off, artefacts, loops)
    finally:
        await loops.close()
