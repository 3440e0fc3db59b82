"""What handlers can use: the services that the lifespan opened, as one typed dependency."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from orchestrator.accounts.wiring import Accounts
from orchestrator.alerts.service import AlertService, WebhookService
from orchestrator.archives.wiring import Archives
from orchestrator.batches.service import BatchService
from orchestrator.benchmarks.service import BenchmarkFiles
from orchestrator.commands.service import CommandRuns
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.jobs import DatasetJobs
from orchestrator.db.session import Database
from orchestrator.errors import Forbidden
from orchestrator.evals.jobs import EvalJobs
from orchestrator.evals.service import EvalService
from orchestrator.fleet.agents import Agents
from orchestrator.grading.agreement import AgreementService
from orchestrator.grading.service import GradeService
from orchestrator.grading.uploads import Uploads
from orchestrator.harnesses.service import HarnessRuns
from orchestrator.health.service import Readiness
from orchestrator.http.access.identity import Authority, Caller
from orchestrator.installation.service import Installation
from orchestrator.jobs.service import JobService
from orchestrator.metrics.run_metrics import RunMetrics
from orchestrator.models.service import ModelCatalogue
from orchestrator.models.sync import SyncResult
from orchestrator.prices.service import PriceLists
from orchestrator.providers.wiring import Providers
from orchestrator.retention.service import RunDeletion
from orchestrator.runs.live.feed import Live
from orchestrator.runs.scheduling.fleet import Fleet
from orchestrator.runs.scheduling.loops import Loops, Signals
from orchestrator.runs.service import RunService
from orchestrator.runs.warm_pool.pool import Pool
from orchestrator.schedules.service import ScheduleService
from orchestrator.serving.runner_listener import RunnerListener
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.traces.service import TraceImport


@dataclass(frozen=True)
class Services:
    settings: Settings
    clock: Clock
    db: Database
    installation: Installation
    catalogue: Catalogue
    benchmark_files: BenchmarkFiles
    runs: RunService
    models: ModelCatalogue
    price_lists: PriceLists
    commands: CommandRuns
    harnesses: HarnessRuns
    schedules: ScheduleService
    alerts: AlertService
    webhooks: WebhookService
    grades: GradeService
    agreements: AgreementService
    batches: BatchService
    archives: Archives
    deletion: RunDeletion
    uploads: Uploads
    evals: EvalService
    eval_jobs: EvalJobs
    trace_import: TraceImport
    dataset_jobs: DatasetJobs
    jobs: JobService
    fleet: Fleet
    readiness: Readiness
    pool: Pool
    agents: Agents
    live: Live
    run_metrics: RunMetrics
    waiting_for: Callable[[str], str | None]
    """What a run's model calls are waiting for, in one sentence, according to the gateway."""
    request_notes: Callable[[str, str], list[str]]
    """What was learned about the server of a provider's model, in sentences."""
    door: RunnerListener
    loops: Loops
    signals: Signals
    authority: Authority
    accounts: Accounts
    providers: Providers
    sync_models: Callable[[], Awaitable[SyncResult]]
    """Update the catalogue from the providers' model lists."""


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Context = Annotated[Services, Depends(services_of)]


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope["benchyard.caller"]
    return caller


def user_of(request: Request) -> tuple[Caller, int]:
    """The caller and their user id, for requests about a person's own account."""
    caller = caller_of(request)
    if caller.user_id is None or caller.session_id is None:
        raise Forbidden("This needs the account of a user: sign in on the pages; a token has no account.")
    return caller, caller.user_id


def base_url(context: Services, request: Request) -> str:
    """Where people reach the service: the configured public URL, else the address of this request."""
    return (context.settings.public_url or str(request.base_url)).rstrip("/")
