"""Every route has a policy, and a request is handled by the route whose policy was applied to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI
from starlette.routing import Mount, Route
from starlette.types import Message, Scope

from orchestrator.app import create_app
from orchestrator.http.policy import (
    ADMIN,
    ANYONE,
    MATCH,
    OWNER,
    READ,
    RUN,
    Audit,
    Body,
    Policy,
    Router,
    RouteWithoutPolicy,
    set_policy,
)
from orchestrator.http.route_table import RouteTable, include
from orchestrator.settings import Settings

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


async def endpoint() -> str:
    return "done"


def connection(method: str, path: str) -> Scope:
    return {"type": "http", "method": method, "path": path, "root_path": "", "headers": [], "query_string": b""}


def test_a_route_without_a_policy_is_refused_where_it_is_declared() -> None:
    router = Router(prefix="/api/things")
    with pytest.raises(RouteWithoutPolicy, match=r"POST /api/things/\{thing\} \(.*test_policy.endpoint\) has no policy"):
        router.post("/{thing}")(endpoint)


@pytest.mark.parametrize("way", ["application", "included", "extended", "mounted"])
def test_an_application_with_a_route_without_a_policy_does_not_start(tmp_path: Path, way: str) -> None:
    app, plain = FastAPI(openapi_url=None), APIRouter()
    plain.get("/api/things")(endpoint)
    match way:
        case "application":
            app.get("/api/things")(endpoint)
        case "included":
            app.include_router(plain)
        case "extended":
            include(app, plain)
        case "mounted":
            app.mount("/api/things", app=FastAPI())
    with pytest.raises(RouteWithoutPolicy, match="has no policy" if way == "included" else "/api/things has no policy"):
        RouteTable(Settings(data=tmp_path)).serve(app)


def test_the_table_finds_the_route_that_was_declared_first(tmp_path: Path) -> None:
    """As a walk through all routes in their order would, for every path with every word that its neighbours have."""
    app = create_app(Settings(data=tmp_path, token="the-right-token"))
    routes: RouteTable = app.state.routes
    declared = [route for route in app.routes if isinstance(route, Route | Mount)]
    assert len(declared) > 200

    def walk(method: str, path: str) -> Route | Mount | None:
        for route in declared:
            takes = isinstance(route, Mount) or method in (route.methods or ())
            if takes and route.path_regex.match(path):
                return route
        return None

    words: dict[str, set[str]] = {}
    for route in declared:
        first, *others = route.path[1:].split("/")
        words.setdefault(first, {"7", "a/b"}).update(word for word in others if word and "{" not in word)
    filled = {re.sub(r"\{[^}]*\}", word, route.path) for route in declared for word in words[route.path[1:].split("/")[0]]}
    paths = filled | {f"{route.path}{tail}" for route in declared for tail in ("/", "/more", "//")}
    wrong = [
        (method, path) for path in paths for method in METHODS if routes.find(method, path).route is not walk(method, path)
    ]
    assert wrong == []


def made(tmp_path: Path, host: str = "0.0.0.0") -> tuple[FastAPI, RouteTable]:
    app, router, page = FastAPI(openapi_url=None), Router(), Router()
    router.get("/api/things", policy=Policy(ADMIN))(endpoint)
    router.delete("/api/things/{thing}", policy=Policy(OWNER))(endpoint)
    router.get("/api/runs", policy=Policy(READ))(endpoint)
    router.post("/api/runs", policy=Policy(RUN, body=Body.SMALL, streams=True))(endpoint)
    router.get("/shared/{key}", policy=Policy(ANYONE, audit=Audit.NEVER))(endpoint)
    router.get("/metrics", policy=Policy(READ, open_on_loopback=True))(endpoint)
    page.get("/account", policy=Policy(READ, needs_workspace=False))(endpoint)
    for route in page.routes:
        route.for_people = True  # type: ignore[attr-defined]
    include(app, router, page)
    app.mount("/static", FastAPI())
    set_policy(app.routes[-1], Policy(ANYONE, deadline=False))
    table = RouteTable(Settings(data=tmp_path, host=host))
    table.serve(app)
    return app, table


@pytest.mark.parametrize(
    ("method", "path", "scope", "for_people", "audit"),
    [
        ("GET", "/api/things/7", ADMIN, False, Audit.CHANGES),
        ("PUT", "/api/things/7", ADMIN, False, Audit.CHANGES),
        ("HEAD", "/api/things", ADMIN, False, Audit.CHANGES),
        ("GET", "/api/runs/7", READ, False, Audit.CHANGES),
        ("PUT", "/api/runs", ADMIN, False, Audit.CHANGES),
        ("GET", "/api/nothing", READ, False, Audit.CHANGES),
        ("GET", "/api", READ, False, Audit.CHANGES),
        ("POST", "/shared/7", ANYONE, False, Audit.NEVER),
        ("GET", "/shared", ANYONE, False, Audit.NEVER),
        ("POST", "/account", ADMIN, True, Audit.CHANGES),
        ("GET", "/nowhere", READ, True, Audit.CHANGES),
        ("POST", "/nowhere/at/all", ADMIN, True, Audit.CHANGES),
        ("GET", "/static", ANYONE, False, Audit.CHANGES),
    ],
)
def test_a_request_that_no_route_takes_is_treated_as_its_neighbours_are(
    tmp_path: Path, method: str, path: str, scope: str | None, for_people: bool, audit: Audit
) -> None:
    match = made(tmp_path)[1].find(method, path)
    assert (match.route, match.policy.scope, match.for_people, match.policy.audit) == (None, scope, for_people, audit)
    assert match.policy.needs_workspace == (path != "/account")


def test_limits_come_from_the_settings(tmp_path: Path) -> None:
    table = made(tmp_path)[1]
    settings = Settings(data=tmp_path)
    ordinary, stream, files = (
        table.find("GET", "/api/runs"),
        table.find("POST", "/api/runs"),
        table.find("GET", "/static/a.css"),
    )
    assert (ordinary.body_cap, ordinary.deadline_s) == (settings.max_body_bytes, settings.request_timeout_s)
    assert (stream.body_cap, stream.deadline_s) == (64 << 10, None)
    assert (files.body_cap, files.deadline_s) == (settings.max_body_bytes, None)


def test_open_on_loopback_is_closed_elsewhere(tmp_path: Path) -> None:
    assert made(tmp_path)[1].find("GET", "/metrics").policy.scope is READ
    assert made(tmp_path, host="127.0.0.1")[1].find("GET", "/metrics").policy.scope is ANYONE


@pytest.mark.anyio
async def test_a_handler_runs_only_under_its_own_policy(tmp_path: Path) -> None:
    """A request that came around the table, or was let through as another's, is not handled."""
    app, table = made(tmp_path)
    statuses = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = connection("GET", "/api/runs")
    table.apply(scope)
    await app(scope, receive, send)
    for match in (None, table.find("GET", "/nowhere")):
        with pytest.raises(RuntimeError, match="GET /api/runs was reached without its policy"):
            await app({**connection("GET", "/api/runs"), MATCH: match}, receive, send)
    assert statuses[0] == 200
    assert set(statuses[1:]) <= {500}
