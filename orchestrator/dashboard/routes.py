"""Adds the pages to the application: routers, static files, and a page for unknown URLs."""

from __future__ import annotations

import inspect
from typing import Any

from fastapi import FastAPI, Request
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from orchestrator.accounts import pages as account
from orchestrator.alerts import pages as webhooks
from orchestrator.audit import pages as audit
from orchestrator.batches import pages as batches
from orchestrator.benchmarks import pages as benchmarks
from orchestrator.commands import pages as new_command
from orchestrator.dashboard import overview
from orchestrator.dashboard.shell import HERE, error_page
from orchestrator.datasets import pages as datasets
from orchestrator.errors import ServiceError
from orchestrator.evals import labelling_pages as labelling
from orchestrator.evals import pages as evals
from orchestrator.evals import set_pages as eval_sets
from orchestrator.fleet import pages as fleet
from orchestrator.http.policy import ANYONE, MATCH, Policy, set_policy
from orchestrator.http.route_table import include
from orchestrator.jobs import pages as jobs
from orchestrator.leaderboard import pages as leaderboard
from orchestrator.limits import pages as limits
from orchestrator.models import pages as models
from orchestrator.provider_keys import pages as keys
from orchestrator.retention import pages as run_deletion
from orchestrator.runs.pages import compare, items, new_run, run, runs
from orchestrator.schedules import pages as schedules
from orchestrator.sign_in import pages as sign_in
from orchestrator.tokens import pages as settings

PAGES = (
    sign_in,
    account,
    overview,
    new_command,
    new_run,
    runs,
    run_deletion,
    run,
    items,
    compare,
    batches,
    leaderboard,
    models,
    benchmarks,
    datasets,
    fleet,
    schedules,
    eval_sets,
    labelling,
    evals,
    jobs,
    settings,
    webhooks,
    keys,
    limits,
    audit,
)


class Assets(StaticFiles):
    """Static files that a browser caches but revalidates every time, so that an upgrade shows at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "no-cache"
        return response


def install(app: FastAPI) -> None:
    include(app, *(module.router for module in PAGES))
    app.mount("/static", Assets(directory=HERE / "static"), name="static")
    set_policy(app.routes[-1], Policy(ANYONE))
    _install_not_found(app)


def refusal(scope: Scope, error: ServiceError) -> Response:
    """A page that says why a request was refused."""
    return error_page(Request(scope), error.status, error.detail)


def _install_not_found(app: FastAPI) -> None:
    """Unknown URLs give people a page and programs problem+json."""
    otherwise: Any = app.exception_handlers[HTTPException]

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        reads_html = "text/html" in request.headers.get("accept", "")
        if error.status_code == 404 and reads_html and request.scope[MATCH].for_people:
            return error_page(request, 404, f"No page at {request.url.path}.")
        answer = otherwise(request, error)
        response: Response = await answer if inspect.isawaitable(answer) else answer
        return response
