"""Named tokens: made once, found by their hash, bounded by their scope, gone when revoked or expired."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise

import httpx
import pytest

from orchestrator.app import create_app
from orchestrator.errors import RateLimited
from orchestrator.http.access.identity import SESSION_S
from orchestrator.http.access.login_throttle import FREE, LONGEST_S, PATIENCE_S, LoginThrottle, names_of
from orchestrator.http.route_table import RouteTable
from orchestrator.scopes import Scope
from orchestrator.settings import Settings
from tests.served import TOKEN, Service

SAME = {"sec-fetch-site": "same-origin"}


@asynccontextmanager
async def holder(service: Service, token: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=service.url, headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
        yield client


async def make(service: Service, **body: object) -> dict[str, str]:
    answer = await service.client.post("/api/tokens", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, str] = answer.json()
    return made


@pytest.mark.anyio
async def test_a_token_is_shown_once_works_and_can_be_revoked(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    made = await make(service, name="nightly job", scope="run", expires_in_days=7)
    async with holder(service, made["token"]) as client:
        assert (await client.get("/api/container-runs")).status_code == 200
        listed = (await service.client.get("/api/tokens")).json()["items"]
        assert [(each["name"], each["scope"], each["expired"]) for each in listed] == [("nightly job", "run", False)]
        assert listed[0]["last_used_at"] is not None
        assert "token" not in listed[0]
        twice = await service.client.post("/api/tokens", json={"name": " nightly job "})
        assert (twice.status_code, twice.json()["code"]) == (409, "CONFLICT")

        assert (await service.client.delete(f"/api/tokens/{made['id']}")).status_code == 204
        assert (await client.get("/api/container-runs")).status_code == 401
    assert (await service.client.delete(f"/api/tokens/{made['id']}")).status_code == 404
    # The secret is in no file of the data directory and in no line of the log.
    secret = made["token"].removeprefix("by_")
    files = [path for path in service.settings.data.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if secret.encode() in path.read_bytes()]
    said = capsys.readouterr()
    assert "token_made" in said.out
    assert secret not in said.out + said.err


@pytest.mark.anyio
async def test_an_expired_token_is_refused(service: Service) -> None:
    made = await make(service, name="short", expires_in_days=1)
    async with holder(service, made["token"]) as client:
        service.clock.advance(timedelta(days=1).total_seconds() - 1)
        assert (await client.get("/api/models")).status_code == 200
        service.clock.advance(1)
        answer = await client.get("/api/models")
    assert answer.status_code == 401
    assert "expired" in answer.json()["detail"]
    assert (await service.client.get("/api/tokens")).json()["items"][0]["expired"] is True


@pytest.mark.anyio
async def test_scopes_hold_over_http(service: Service) -> None:
    tokens = {scope: (await make(service, name=scope, scope=scope))["token"] for scope in ("read", "run", "admin")}
    run = {"model_id": "demo-strong", "sample_size": 1}
    model = {"slug": "mine", "provider": "openai", "name": "x"}
    expected = {"read": [200, 403, 403, 403], "run": [200, 202, 403, 403], "admin": [200, 202, 201, 200]}
    for scope, token in tokens.items():
        async with holder(service, token) as client:
            answers = [
                await client.get("/api/models"),
                await client.post("/api/container-runs", json=run),
                await client.post("/api/models", json=model),
                await client.get("/api/tokens"),
            ]
        assert [answer.status_code for answer in answers] == expected[scope], scope
        if scope == "read":
            assert "needs a token of scope run" in answers[1].json()["detail"]
            assert answers[1].json()["code"] == "FORBIDDEN"


@pytest.mark.anyio
async def test_a_page_signed_in_with_a_token_can_do_no_more_and_ends_with_it(service: Service) -> None:
    made = await make(service, name="<b>reader</b>")
    async with httpx.AsyncClient(base_url=service.url, headers={**SAME, "accept": "text/html"}, timeout=60) as client:
        assert (await client.post("/login", data={"token": made["token"]})).status_code == 303
        page = await client.get("/runs")
        assert page.status_code == 200
        assert "&lt;b&gt;reader&lt;/b&gt; (read)" in page.text
        assert "/runs/new" not in page.text.split("<main")[0]
        refused = await client.post("/runs/new", data={"model": "demo-strong", "sample_size": "1"})
        assert (refused.status_code, refused.headers["content-type"]) == (403, "text/html; charset=utf-8")
        assert "needs a token of scope run" in refused.text
        assert (await client.get("/settings")).status_code == 403

        await service.client.delete(f"/api/tokens/{made['id']}")
        assert (await client.get("/runs")).headers["location"] == "/login?next=%2Fruns"


@pytest.mark.anyio
@pytest.mark.parametrize("forged", ["0.{now}.{seal}", "1.{now}.", "..", "0.0.x", "9" * 40 + ".1.x", "٣.٣.x"])
async def test_a_session_cannot_be_made_up_and_ends_by_itself(service: Service, forged: str) -> None:
    now = int(service.clock.now().timestamp())
    given = forged.format(now=now, seal="0" * 64)
    authority = service.services.authority
    assert await authority.by_session(given) is None
    caller = await authority.by_token(TOKEN)
    assert caller is not None
    session = await authority.session_for(caller)
    assert await authority.by_session(session) == caller
    moved = session.replace(f".{now}.", f".{now + 1}.")
    assert await authority.by_session(moved) is None
    service.clock.advance(SESSION_S)
    assert await authority.by_session(session) is None


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> RouteTable:
    app = create_app(Settings(data=tmp_path_factory.mktemp("routes"), token=TOKEN))
    table: RouteTable = app.state.routes
    return table


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/api/models", "read"),
        ("HEAD", "/runs", "read"),
        ("POST", "/logout", "read"),
        ("POST", "/api/container-runs", "run"),
        ("POST", "/api/container-runs/x/cancel", "run"),
        ("POST", "/api/container-runs/x/retry", "run"),
        ("POST", "/api/schedules/openai/gpt/run", "run"),
        ("POST", "/runs/new", "run"),
        ("POST", "/eval-sets/x/label", "run"),
        ("POST", "/api/evals/x/contradictions", "run"),
        ("DELETE", "/api/eval-sets/x/feedback/a/trace", "run"),
        ("DELETE", "/api/traces/x", "admin"),
        ("PATCH", "/api/evals/x", "admin"),
        ("POST", "/evals/x/remove", "admin"),
        ("DELETE", "/api/container-runs/x/cancel", "admin"),
        ("POST", "/api/container-runs/x/cancel/more", "admin"),
        ("POST", "/api/container-runs/\n/cancel", "run"),
        ("POST", "/api/schedules", "schedule"),
        ("POST", "/schedules/3/remove", "schedule"),
        ("PUT", "/api/datasets/x", "owner"),
        ("POST", "/api/models", "owner"),
        ("DELETE", "/api/agents/x", "owner"),
        ("GET", "/api/tokens", "admin"),
        ("GET", "/api/tokens/\n1", "admin"),
        ("GET", "/api/alerts/webhooks/1/deliveries", "admin"),
        ("GET", "/api/share-links", "admin"),
        ("GET", "/settings", "admin"),
        ("POST", "/what/will/come", "admin"),
    ],
)
def test_what_a_request_needs(routes: RouteTable, method: str, path: str, scope: str) -> None:
    assert routes.find(method, path).policy.scope == scope


def test_scopes_are_steps_and_agents_stand_apart() -> None:
    allowed = {have: {want for want in Scope if have.allows(want)} for have in Scope}
    assert allowed == {
        Scope.READ: {Scope.READ},
        Scope.RUN: {Scope.READ, Scope.RUN},
        Scope.SCHEDULE: {Scope.READ, Scope.RUN, Scope.SCHEDULE},
        Scope.ADMIN: {Scope.READ, Scope.RUN, Scope.SCHEDULE, Scope.ADMIN},
        Scope.OWNER: set(Scope),
        Scope.AGENT: {Scope.AGENT},
    }


def test_guessing_becomes_slow_for_one_address_and_not_for_others() -> None:
    delay = LoginThrottle()
    waits = []
    now = 0.0
    for _ in range(8):
        now += delay.wait_s("a", now)
        waits.append(now)
        delay.wrong("a", now)
    gaps = [after - before for before, after in pairwise(waits)]
    assert gaps[: FREE - 1] == [0.0] * (FREE - 1)
    assert gaps[FREE - 1 :] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert delay.wait_s("b", now) == 0

    # Many at once: they stand in line, and who would wait too long is told so.
    waited = []
    with pytest.raises(RateLimited):
        for _ in range(100):
            waited.append(delay.wait_s("a", now))
    assert waited == [LONGEST_S, 2 * LONGEST_S]
    assert waited[-1] <= PATIENCE_S
    assert delay.wait_s("a", now + 3600) == 0  # forgotten
    delay.wrong("a", now)
    delay.right("a")
    assert delay.wait_s("a", now) == 0


def test_guessing_the_rest_of_a_token_is_slow_from_many_addresses_too() -> None:
    delay = LoginThrottle()
    waits = []
    for number in range(FREE + 2):
        names = names_of(f"10.0.0.{number}", f"by_known{number}")
        waits.append(max(delay.wait_s(name, 0.0) for name in names))
        for name in names:
            delay.wrong(name, 0.0)
    assert waits[:FREE] == [0.0] * FREE
    assert waits[FREE] > 0
    assert waits[FREE + 1] > waits[FREE]
    assert max(delay.wait_s(name, 0.0) for name in names_of("10.0.1.1", "by_other0")) == 0.0
