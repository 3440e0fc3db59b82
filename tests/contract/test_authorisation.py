"""Every route by every role, on what is theirs and on what is another workspace's, from one table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from sqlmodel import Session

from orchestrator.http.access.login_throttle import LoginThrottle
from orchestrator.runs.live import queries as event_queries
from tests.conftest import settings_in
from tests.contract.authorisation_table import rows
from tests.contract.two_workspaces import ROLES, World, somebody, two_workspaces
from tests.manual_clock import START
from tests.served import served

STEPS = (*ROLES, "owner")
ENDLESS = ("/api/events", "/stream")
OF_ALL = ("/members", "/account", "/api/users")
"""Where owners see people and names of all workspaces."""
CHANGES_ALL = {
    ("POST", "/logout"),
    ("GET", "/api/auth/logout"),
    ("DELETE", "/api/account/sessions"),
    ("POST", "/account/sessions/end"),
}
"""These end the caller's own session, and come last."""


BODIES: dict[str, dict[str, Any]] = {
    "/feedback": {"items": [{"trace_id": "trace-of-alpha", "rating": "positive"}]},
    "/generate": {"model_id": "demo-strong"},
    "/pause": {"paused": True},
    "/contradictions": {"trace_id": "trace-of-alpha", "wrong": "eval"},
    "/members": {"email": "viewer@example.com", "role": "viewer"},
    "/members/2": {"role": "viewer"},
    "/end": {"mode": "stop"},
}


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, data_template: Path, anyio_backend: str) -> AsyncIterator[World]:
    make = settings_in(tmp_path_factory.mktemp("authorisation"), data_template)
    async with served(make(reconcile_s=60, host="127.0.0.1")) as service:
        found = await two_workspaces(service)
        yield found
        for client in found.callers.values():
            await client.aclose()
        await service.engine.end_all()


def path_of(path: str, things: dict[str, str]) -> str:
    for name, value in things.items():
        path = path.replace("{" + name + "}", value)
    assert "{" not in path, path
    return path


async def ask(client: httpx.AsyncClient, method: str, path: str) -> tuple[int, str]:
    page = not path.startswith(("/api/", "/login/"))
    body = next((body for end, body in BODIES.items() if path.startswith("/api/") and path.endswith(end)), {})
    if path.startswith("/api/alerts/webhooks/") and method == "PATCH":
        body = {"every_failed_run": True}
    if path.startswith(("/api/eval-sets/", "/api/evals/", "/api/workspaces/")) and method == "PATCH":
        body = {"name": "another name"}
    given: dict[str, Any] = {} if method in ("GET", "DELETE") else {"data": {"x": "y"}} if page else {"json": body}
    async with client.stream(method, path, headers={"accept": "text/html" if page else "*/*"}, **given) as answer:
        text = ""
        if path.endswith(ENDLESS):
            async with asyncio.timeout(5):
                async for piece in answer.aiter_text():
                    text += piece
                    if "retry:" in text or "event: end" in text:
                        break
        else:
            text = (await answer.aread()).decode("utf-8", "replace")
        if answer.is_redirect:
            text += answer.headers["location"]
        return answer.status_code, text


def allowed(role: str, needed: str) -> bool:
    if needed == "agent":
        return role in ("agent", "owner")
    return needed == "-" or (role in STEPS and STEPS.index(role) >= STEPS.index(needed))


@pytest.mark.anyio
async def test_every_route_has_a_line_and_every_line_a_route(world: World) -> None:
    routes = {
        (method, route.path)
        for route in iter_route_contexts(world.service.app.routes)
        for method in route.methods or ()
        if method != "HEAD" and not str(route.path).startswith("/runner")
    }
    assert routes == {(method, path) for method, path, _, _ in rows()}


@pytest.mark.anyio
async def test_what_is_of_another_workspace_is_not_there(world: World) -> None:
    wrong = []
    for method, path, needed, about in rows():
        if about != "thing":
            continue
        place = path_of(path, {**world.beta.things, "position": "0", "text": "answer"})
        for role in STEPS if allowed("owner", needed) else ():
            if not allowed(role, needed):
                continue
            if role == "owner" and "{slug}" in path:
                continue  # owners may go everywhere
            status, text = await ask(world.callers[role], method, place)
            if status != 404 or world.beta.secret in text.replace(place, ""):
                wrong.append((role, method, place, status, text[:200]))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.anyio
async def test_every_role_may_do_what_the_table_says_and_sees_its_own_workspace_alone(world: World) -> None:
    wrong = []
    for method, path, needed, about in sorted(rows(), key=lambda row: (row[0], row[1]) in CHANGES_ALL or row[0] != "GET"):
        place = path_of(path, world.alpha.things)
        for role in ("anonymous", "agent", *STEPS):
            if (method, path) in CHANGES_ALL and allowed(role, needed):
                continue
            world.service.app.state.login_throttle = LoginThrottle()  # it would make the wrong tokens of this test slow
            status, text = await ask(world.callers[role], method, place)
            refused = status in (401, 403) or (status == 303 and "/login" in text.splitlines()[-1])
            if about == "self" and status == 403 and role == "owner":
                continue  # a token has no account
            if path in ("/login", "/login/provider", "/login/callback", "/login/command-line", "/api/auth/login"):
                refused = False  # they answer 401 to a wrong token, not to a stranger; or lead to the page for signing in
            seen = world.beta.secret in text and not (role == "owner" and (about == "self" or path.startswith(OF_ALL)))
            if refused == allowed(role, needed) or status >= 500 or seen:
                wrong.append((role, method, place, status, text[:200]))
            if (
                method == "GET"
                and about == "thing"
                and allowed(role, needed)
                and status not in (200, 409, 422)
                and "artefacts" not in path
            ):
                wrong.append((role, method, place, status, text[:200]))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.anyio
async def test_somebody_without_a_workspace_sees_their_account_and_nothing_else(world: World) -> None:
    client = await somebody(world.service, world.beta, "viewer")
    async with client:
        users = (await world.service.client.get("/api/users")).json()["items"]
        user_id = next(each["id"] for each in users if each["name"] == "viewer of beta")
        gone = await world.service.client.delete(f"/api/workspaces/beta/members/{user_id}")
        assert gone.status_code == 204
        assert (await client.get("/api/account")).json()["workspace"] == ""
        assert (await client.get("/api/container-runs")).status_code == 403
        assert (await client.get("/api/models")).status_code == 403
        assert (await client.get("/api/container-runs", headers={"x-benchyard-workspace": "beta"})).status_code == 404


@pytest.mark.anyio
async def test_live_events_are_those_of_the_own_workspace(world: World) -> None:
    """From the log and as they happen."""
    heard = ""

    def tell(session: Session) -> None:
        for place in (world.beta, world.alpha):
            data = {"message": f"live {place.secret}", "level": "info"}
            event_queries.append(session, "log", START, run_id=place.things["run_id"], attempt=1, data=data)

    viewer = await somebody(world.service, world.alpha, "viewer")
    async with viewer, asyncio.timeout(30), viewer.stream("GET", "/api/events?after=0") as answer:
        told = False
        async for piece in answer.aiter_text():
            heard += piece
            if not told and world.alpha.secret in heard:
                told = True
                await world.service.services.db.write(tell)
            if f"live {world.alpha.secret}" in heard:
                break
    assert world.beta.secret not in heard
