"""The edge: whose address is believed behind proxies, and which other sites' pages may call."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from orchestrator.http.access.rate_limits import MOST_BUCKETS, TokenBuckets
from orchestrator.http.proxies import TrustedProxies
from orchestrator.settings import Settings
from tests.served import TOKEN, served


async def _unused(*_: Any) -> Any:
    raise AssertionError


PROXIES = (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "caller"),
    [
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("203.0.113.1", "203.0.113.9", "203.0.113.1"),
        ("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9, 10.0.0.7", "203.0.113.9"),
        ("10.0.0.1", "10.0.0.9, 10.0.0.7", "10.0.0.9"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "unknown", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9, rubbish", "10.0.0.1"),
        ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
        ("10.0.0.1", "203.0.113.9:5000", "203.0.113.9"),
        ("10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "203.0.113.9, ::ffff:10.0.0.4, fd00::1", "203.0.113.9"),
    ],
)
@pytest.mark.anyio
async def test_the_caller_is_the_first_hop_that_is_no_proxy_of_ours(peer: str, forwarded: str, caller: str) -> None:
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["client"][0])

    for header in ([forwarded], forwarded.split(",", 1)):
        headers = [(b"x-forwarded-for", each.encode()) for each in header]
        scope = {"type": "http", "client": (peer, 5000), "headers": headers}
        await TrustedProxies(app, networks=PROXIES)(scope, _unused, _unused)
    assert seen == [caller, caller]


@pytest.mark.anyio
@pytest.mark.parametrize(("listed", "seen"), [("127.0.0.0/8", "203.0.113.9"), ("10.0.0.0/8", "127.0.0.1")])
async def test_forwarded_addresses_are_believed_from_listed_proxies_only(
    new_settings: Callable[..., Settings], listed: str, seen: str
) -> None:
    async with served(new_settings(trusted_proxies=listed)) as service:
        await service.client.delete("/api/models/x", headers={"x-forwarded-for": "1.2.3.4, 203.0.113.9"})
        entry = (await service.client.get("/api/audit")).json()["items"][0]
        assert entry["address"] == seen
        login = await service.stranger.post("/login", data={"token": TOKEN}, headers={"x-forwarded-proto": "https"})
        assert "Secure" in login.headers["set-cookie"]


@pytest.mark.anyio
async def test_other_origins_may_call_only_if_listed_and_never_with_a_cookie(new_settings: Callable[..., Settings]) -> None:
    listed = "https://lab.example, http://localhost:3000/"
    async with served(new_settings(cors_origins=listed)) as service:
        preflight = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
        for origin, allowed in [
            ("https://lab.example", True),
            ("http://localhost:3000", True),
            ("https://lab.example.evil.example", False),
            ("http://lab.example", False),
            ("null", False),
        ]:
            asked = await service.stranger.options("/api/container-runs", headers={"origin": origin, **preflight})
            told = await service.client.get("/api/models", headers={"origin": origin})
            wrong = await service.stranger.get("/api/models", headers={"origin": origin})
            names = [answer.headers.get("access-control-allow-origin") for answer in (asked, told, wrong)]
            assert names == ([origin] * 3 if allowed else [None] * 3), origin
            assert asked.is_success == allowed
            assert not any("access-control-allow-credentials" in answer.headers for answer in (asked, told, wrong))
        asked_for = "authorization,content-type,idempotency-key,last-event-id,x-benchyard-workspace"
        wide = {"access-control-request-method": "PATCH", "access-control-request-headers": asked_for}
        asked = await service.stranger.options("/api/events", headers={"origin": "https://lab.example", **wide})
        assert asked.status_code == 200, asked.text
        may_send = {each.strip().lower() for each in asked.headers["access-control-allow-headers"].split(",")}
        assert set(asked_for.split(",")) <= may_send
        shown = (await service.client.get("/api/models", headers={"origin": "https://lab.example"})).headers
        may_read = {each.strip().lower() for each in shown["access-control-expose-headers"].split(",")}
        assert {"location", "retry-after", "x-request-id", "content-disposition"} <= may_read
        strange = {"access-control-request-method": "GET", "access-control-request-headers": "x-other"}
        refused = await service.stranger.options("/api/events", headers={"origin": "https://lab.example", **strange})
        assert refused.status_code == 400
        signed = await service.stranger.post("/login", data={"token": TOKEN})
        cookie = {"cookie": signed.headers["set-cookie"].split(";")[0], "origin": "https://lab.example"}
        async with httpx.AsyncClient(base_url=service.url, timeout=60) as page:
            refused = await page.post("/api/container-runs", json={}, headers=cookie)
        assert refused.status_code == 403
    async with served(new_settings()) as service:
        none = await service.stranger.options("/api/models", headers={"origin": "https://lab.example", **preflight})
        assert (none.status_code, none.headers.get("access-control-allow-origin")) == (401, None)


@pytest.mark.parametrize("given", ["*", "lab.example", "https://lab.example/path", "null", "https://*.example"])
def test_an_origin_that_is_none_is_refused_at_the_start(given: str) -> None:
    with pytest.raises(ValidationError, match="not an origin"):
        Settings(cors_origins=given)


def test_a_bucket_gives_so_many_at_once_and_so_many_a_second() -> None:
    buckets = TokenBuckets()
    assert [buckets.take("a", 2.0, 3, 0.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 0.5]
    assert buckets.take("b", 2.0, 3, 0.0) == 0.0
    assert buckets.take("a", 2.0, 3, 0.4) == pytest.approx(0.1)
    assert buckets.take("a", 2.0, 3, 0.5) == 0.0
    assert [buckets.take("a", 2.0, 3, 100.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    for number in range(MOST_BUCKETS):
        buckets.take(f"c{number}", 2.0, 3, 100.0)
    assert buckets.take("a", 2.0, 3, 100.0) == 0.0, "the quietest is forgotten"
