"""What handlers reach: the services that the lifespan opened, as one typed dependency."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from orchestrator.accounts.wiring import Accounts
from orchestrator.api.callers import Authority, Caller
from orchestrator.archives.wiring import Archives
from orchestrator.batches.service import BatchService
from orchestrator.clock import Clock
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.jobs import DatasetJobs
from orchestrator.db.session import Database
from orchestrator.evals.importing import TraceImport
from orchestrator.evals.jobs import EvalJobs
from orchestrator.evals.service import EvalService
from orchestrator.grading.service import GradeService
from orchestrator.grading.uploads import Uploads
from orchestrator.installation.service import Installation
from orchestrator.live import Live
from orchestrator.metrics.run_metrics import RunMetrics
from orchestrator.models_sync import SyncResult
from orchestrator.readiness import Readiness
from orchestrator.retention.service import RunDeletion
from orchestrator.runner_door import RunnerDoor
from orchestrator.runs.agents import Agents
from orchestrator.runs.commands import CommandRuns
from orchestrator.runs.fleet import Fleet
from orchestrator.runs.loops import Loops, Signals
from orchestrator.runs.pool import Pool
from orchestrator.runs.service import RunService
from orchestrator.schedules.service import ScheduleService
from orchestrator.schedules.webhooks import WebhookService
from orchestrator.settings import Settings


@dataclass(frozen=True)
class Services:
    settings: Settings
    clock: Clock
    db: Database
    installation: Installation
    catalogue: Catalogue
    runs: RunService
    commands: CommandRuns
    schedules: ScheduleService
    webhooks: WebhookService
    grades: GradeService
    batches: BatchService
    archives: Archives
    deletion: RunDeletion
    uploads: Uploads
    evals: EvalService
    eval_jobs: EvalJobs
    trace_import: TraceImport
    dataset_jobs: DatasetJobs
    fleet: Fleet
    readiness: Readiness
    pool: Pool
    agents: Agents
    live: Live
    run_metrics: RunMetrics
    waiting_for: Callable[[str], str | None]
    """What a run's model calls wait for, in one sentence, as the gateway knows it."""
    door: RunnerDoor
    loops: Loops
    signals: Signals
    authority: Authority
    accounts: Accounts
    sync_models: Callable[[], Awaitable[SyncResult]]
    """Have the catalogue follow the providers' lists."""


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Context = Annotated[Services, Depends(services_of)]


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope["benchyard.caller"]
    return caller
