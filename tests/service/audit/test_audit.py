"""The audit log: every change is in it, nothing secret is, and nobody can change it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from orchestrator.audit import queries as audit_queries
from orchestrator.audit.tables import AuditEntry
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.http.audit_trail import REFUSALS_AT_ONCE
from orchestrator.scopes import SAFE_METHODS
from orchestrator.settings import Settings
from tests.manual_clock import START
from tests.served import TOKEN, Service, served

pytestmark = pytest.mark.anyio

NO_CHANGE = {
    "/api/quotes",
    "/api/benchmarks/check",
    "/api/benchmarks/try",
    "/api/agents/claim",
    "/api/agents/report",
    *(f"{prefix}/{step}" for prefix in ("", "/api/tasks") for step in ("claim", "heartbeat", "complete", "fail")),
}
"""A price, a check, a trial, and what agents and task runners say every few seconds."""
CANARY = "by_canary_0123456789_canary_0123456789"


async def entries(service: Service, **query: Any) -> list[dict[str, Any]]:
    answer = await service.client.get("/api/audit", params={"limit": 500, **query})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def changing_routes(app: FastAPI) -> list[tuple[str, str]]:
    return [
        (method, route.path)
        for route in iter_route_contexts(app.routes)
        for method in sorted((route.methods or set()) - SAFE_METHODS)
        if route.path and not route.path.startswith(("/runner/", "/tasks/")) and route.path not in NO_CHANGE
    ]


async def test_every_route_that_can_change_something_leaves_an_entry(service: Service) -> None:
    routes = changing_routes(service.app)
    assert len(routes) > 60
    for method, path in routes:
        await service.client.request(method, path.replace("{", "").replace("}", "").replace(":path", ""), json={})
    written = {each["action"] for each in await entries(service)}
    missing = {f"{method} {path}" for method, path in routes} - written
    assert {each for each in missing if each != "POST /login"} == set()
    assert "sign-in" in written


async def test_who_what_when_from_where_and_with_what_outcome(service: Service) -> None:
    made = await service.client.post("/api/tokens", json={"name": "nightly", "scope": "run"})
    token, number = made.json()["token"], made.json()["id"]
    async with httpx.AsyncClient(base_url=service.url, headers={"authorization": f"Bearer {token}"}, timeout=60) as nightly:
        run = await nightly.post("/api/container-runs", json={"model_id": "demo-strong", "sample_size": 1})
        refused = await nightly.delete("/api/models/demo-strong")
    assert (run.status_code, refused.status_code) == (202, 403)
    third, second, first = await entries(service)
    facts = ("actor_kind", "actor", "action", "object_id", "status", "address", "token_id")
    assert [tuple(each[name] for name in facts) for each in (first, second, third)] == [
        ("owner", "the installation's token", "POST /api/tokens", str(number), 201, "127.0.0.1", None),
        ("token", "nightly", "POST /api/container-runs", run.json()["run_id"], 202, "127.0.0.1", number),
        ("token", "nightly", "DELETE /api/models/{model:path}", "demo-strong", 403, "127.0.0.1", number),
    ]
    assert second["request_id"] == run.headers["x-request-id"]
    assert second["at"].startswith(service.clock.now().date().isoformat())
    assert await entries(service, actor="NIGHT", refused=True) == [third]
    assert await entries(service, action="container-runs", since="2000-01-01T00:00:00Z") == [second]
    page = (await service.client.get("/api/audit", params={"limit": 1, "after": third["id"]})).json()
    assert (page["items"], page["next"]) == ([second], str(second["id"]))


async def test_nothing_secret_is_in_it(service: Service) -> None:
    headers = {"authorization": f"Bearer {CANARY}", "cookie": f"benchyard_session={CANARY}"}
    async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=60) as stranger:
        await stranger.post(f"/api/container-runs/{CANARY}/cancel?token={CANARY}", json={"token": CANARY})
        await stranger.post("/login", data={"token": CANARY})
        await stranger.get("/login", params={"token": CANARY})
        await stranger.get("/api/models")
    await service.client.delete(f"/api/models/{CANARY}")
    await service.client.post(f"/nowhere/{CANARY}")
    await service.client.get("/login", params={"token": TOKEN})
    found = await entries(service)
    assert {each["action"] for each in found} >= {"sign-in", "GET /api/models", "POST (no such address)"}
    assert CANARY[:12] not in str(found)
    assert TOKEN not in str(found)


async def test_refusals_without_end_are_counted_and_not_all_kept(service: Service) -> None:
    for _ in range(REFUSALS_AT_ONCE + 5):
        await service.stranger.post("/api/container-runs", json={})
    assert len(await entries(service)) == REFUSALS_AT_ONCE
    service.clock.advance(10)
    await service.stranger.post("/api/container-runs", json={})
    assert (await entries(service))[0]["detail"] == "5 refusals before this one were not written down."


async def test_entries_wait_while_the_database_is_away(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise DatabaseUnavailable("disk full")

    with monkeypatch.context() as world:
        world.setattr(audit_queries, "add", away)
        assert (await service.client.delete("/api/models/nothing")).status_code == 404
    await service.client.delete("/api/models/nothing-else")
    assert [each["object_id"] for each in await entries(service)] == ["nothing-else", "nothing"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET actor = 'somebody else'",
        "DELETE FROM audit_log",
        "DELETE FROM audit_retention",
        "UPDATE audit_retention SET before = '2000-01-01'",
        "INSERT OR REPLACE INTO audit_log SELECT * FROM audit_log",
        "TRUNCATE audit_log",
    ],
)
async def test_the_database_refuses_to_change_it(database: Database, dialect: str, statement: str) -> None:
    def fill(session: Session) -> None:
        old = AuditEntry(at=START - timedelta(days=100), actor_kind="owner", action="old")
        audit_queries.add(session, old, AuditEntry(at=START, actor_kind="owner", action="new"))
        assert audit_queries.prune(session, START - timedelta(days=90), START, "me") == 1

    await database.write(fill)
    if ("OR REPLACE" in statement) != (dialect == "sqlite") and statement.startswith(("INSERT", "TRUNCATE")):
        return  # the other database has no such statement
    with pytest.raises((DBAPIError, DatabaseUnavailable), match="append-only"):
        await database.write(lambda session: session.connection().execute(text(statement)))
    kept = await database.read(lambda session: audit_queries.page(session, limit=10))
    assert [each.action for each in kept] == ["new"]


async def test_old_entries_go_by_decision_and_the_decision_stays(new_settings: Callable[..., Settings]) -> None:
    async with served(new_settings()) as service:
        await service.client.delete("/api/models/nothing")
        service.clock.advance(40 * 86400)
        now = service.clock.now()
        early = await service.client.post("/api/audit/prune", json={"before": (now - timedelta(days=29)).isoformat()})
        assert early.status_code == 422
        done = await service.client.post("/api/audit/prune", json={"before": (now - timedelta(days=31)).isoformat()})
        assert done.json() == {"deleted": 1}
        assert [(each["action"], each["status"]) for each in await entries(service)] == [
            ("POST /api/audit/prune", 200),
            ("POST /api/audit/prune", 422),
        ]
