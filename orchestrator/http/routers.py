"""All REST routers of the service, one line per feature. Pages are listed in `dashboard.routes`."""

from __future__ import annotations

from fastapi import FastAPI

from orchestrator.accounts import routes as accounts
from orchestrator.alerts import routes as alerts
from orchestrator.archives import routes as archives
from orchestrator.audit import routes as audit
from orchestrator.batches import routes as batches
from orchestrator.benchmarks import routes as benchmarks
from orchestrator.commands import routes as commands
from orchestrator.costs import routes as costs
from orchestrator.datasets import routes as datasets
from orchestrator.evals import routes as evals
from orchestrator.fleet import agent_routes as agents
from orchestrator.fleet import routes as fleet
from orchestrator.gateway import call_routes as calls
from orchestrator.grading import routes as grading
from orchestrator.health import routes as health
from orchestrator.http.policy import Router
from orchestrator.http.route_table import include
from orchestrator.jobs import routes as jobs
from orchestrator.leaderboard import routes as leaderboard
from orchestrator.limits import routes as limits
from orchestrator.models import routes as models
from orchestrator.prices import routes as prices
from orchestrator.provider_keys import routes as provider_keys
from orchestrator.providers import routes as providers
from orchestrator.retention import routes as retention
from orchestrator.runs import alias_routes
from orchestrator.runs import routes as runs
from orchestrator.runs.live import routes as stream_routes
from orchestrator.runs.reports import routes as export_routes
from orchestrator.schedules import routes as schedules
from orchestrator.sign_in import routes as sign_in
from orchestrator.tasks import routes as tasks
from orchestrator.tokens import routes as tokens
from orchestrator.traces import routes as traces

ROUTERS: tuple[Router, ...] = (
    runs.router,
    retention.router,
    commands.router,
    calls.router,
    costs.router,
    grading.router,
    evals.sets,
    traces.router,
    evals.router,
    jobs.router,
    export_routes.router,
    batches.router,
    archives.router,
    schedules.router,
    alerts.router,
    leaderboard.router,
    alerts.share_router,
    models.router,
    prices.router,
    benchmarks.router,
    datasets.router,
    fleet.router,
    agents.router,
    costs.machines,
    tokens.router,
    providers.router,
    provider_keys.router,
    limits.router,
    accounts.router,
    alias_routes.router,
    sign_in.router,
    sign_in.command_lines,
    audit.router,
    stream_routes.router,
    health.router,
    alias_routes.bare,
    tasks.router,
    tasks.files,
    tasks.bare,
)
"""In the order of matching."""


def install(app: FastAPI) -> None:
    include(app, *ROUTERS)
