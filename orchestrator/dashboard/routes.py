"""Adds the pages to the application: routers, static files, and a page for unknown URLs."""

from __future__ import annotations

import inspect
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from orchestrator.accounts import pages as account
from orchestrator.alerts import pages as webhooks
from orchestrator.audit import pages as audit
from orchestrator.batches import pages as batches
from orchestrator.benchmarks import pages as benchmarks
from orchestrator.commands import pages as new_command
from orchestrator.dashboard import overview
from orchestrator.dashboard.assets import Assets
from orchestrator.dashboard.shell import error_page
from orchestrator.datasets import pages as datasets
from orchestrator.errors import ServiceError
from orchestrator.evals.pages import evals, labelling
from orchestrator.evals.pages import sets as eval_sets
from orchestrator.fleet import pages as fleet
from orchestrator.harnesses import pages as new_harness
from orchestrator.http.access.guard import SECURITY_HEADERS
from orchestrator.http.policy import ANYONE, MATCH, Policy, set_policy
from orchestrator.http.problems import request_id_of
from orchestrator.http.route_table import RouteTable, include
from orchestrator.jobs import pages as jobs
from orchestrator.leaderboard import pages as leaderboard
from orchestrator.limits import pages as limits
from orchestrator.models import pages as models
from orchestrator.provider_keys import pages as keys
from orchestrator.providers import pages as providers
from orchestrator.retention import pages as run_deletion
from orchestrator.runs.pages import bulk, compare, compare_answers, items, labels, new_run, run, runs
from orchestrator.schedules import pages as schedules
from orchestrator.sign_in import pages as sign_in
from orchestrator.tokens import pages as settings

PAGES = (
    sign_in,
    account,
    overview,
    new_command,
    new_harness,
    new_run,
    bulk,
    runs,
    run_deletion,
    run,
    labels,
    items,
    compare,
    compare_answers,
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
    providers,
    limits,
    audit,
)


def install(app: FastAPI) -> None:
    include(app, *(module.router for module in PAGES))
    app.mount("/static", Assets(), name="static")
    set_policy(app.routes[-1], Policy(ANYONE))
    _install_not_found(app)


def refusal(scope: Scope, error: ServiceError) -> Response:
    """A page that says why a request was refused."""
    return error_page(Request(scope), error.status, error.detail)


def _page_above(request: Request) -> str | None:
    """The page that the form at this address belongs to."""
    routes: RouteTable = request.app.state.routes
    root, path = request.app.state.services.settings.root, request.scope["path"]
    while path := path.rpartition("/")[0]:
        match = routes.find("GET", path)
        if match.route is not None and match.for_people:
            return f"{root}{path}"
    return None


def _install_not_found(app: FastAPI) -> None:
    """Unknown URLs give people a page and programs problem+json."""
    otherwise: Any = app.exception_handlers[HTTPException]

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        reads_html = "text/html" in request.headers.get("accept", "")
        if error.status_code == 404 and reads_html and request.scope[MATCH].for_people:
            return error_page(request, 404, f"No page at {request.url.path}.")
        if error.status_code == 405 and reads_html and request.method == "GET" and (page := _page_above(request)):
            return RedirectResponse(page, 303)  # reloaded, or opened again, after a form that answers with a page
        answer = otherwise(request, error)
        response: Response = await answer if inspect.isawaitable(answer) else answer
        return response

    unexpected: Any = app.exception_handlers[Exception]

    @app.exception_handler(Exception)
    async def _fault(request: Request, error: Exception) -> Response:
        response: Response = await unexpected(request, error)
        match = request.scope.get(MATCH)
        if match is None or not match.for_people or "text/html" not in request.headers.get("accept", ""):
            return response
        detail = f"Something went wrong on our side; the log has it under request {request_id_of(request)}."
        page = error_page(request, 500, detail)
        page.headers.update(SECURITY_HEADERS)  # what adds them to other pages has seen the fault pass
        return page
