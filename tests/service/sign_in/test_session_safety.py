"""Signing out ends a session for good; another site's page cannot put somebody into another account."""

from __future__ import annotations

import httpx
import pytest

from tests.served import TOKEN, Service

pytestmark = pytest.mark.anyio
COOKIE = "benchyard_session"
HTML = {"accept": "text/html"}


async def signed_in(service: Service, token: str = TOKEN) -> str:
    async with httpx.AsyncClient(base_url=service.url) as browser:
        answer = await browser.get("/login", params={"token": token}, headers={"sec-fetch-site": "none", **HTML})
        assert answer.status_code == 303
        return str(answer.cookies[COOKIE])


async def named_token(service: Service, name: str) -> str:
    made = await service.client.post("/api/tokens", json={"name": name, "scope": "read"})
    return str(made.json()["token"])


async def test_a_copied_cookie_opens_nothing_after_signing_out(shared_service: Service) -> None:
    other = await signed_in(shared_service)
    shared_service.clock.advance(1)  # sessions of one token that begin in the same second are one
    for token in (TOKEN, await named_token(shared_service, "for signing out")):
        cookie = await signed_in(shared_service, token)
        async with httpx.AsyncClient(base_url=shared_service.url, cookies={COOKIE: cookie}) as browser:
            assert (await browser.get("/api/models")).status_code == 200
            assert (await browser.post("/logout", headers={"sec-fetch-site": "same-origin"})).status_code == 303
        async with httpx.AsyncClient(base_url=shared_service.url, cookies={COOKIE: cookie}) as thief:
            assert (await thief.get("/api/models")).status_code == 401
            assert (await thief.get("/runs", headers=HTML)).status_code == 303
    async with httpx.AsyncClient(base_url=shared_service.url, cookies={COOKIE: other}) as elsewhere:
        assert (await elsewhere.get("/api/models")).status_code == 200  # another browser stays signed in


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_link_on_another_site_is_asked_about(shared_service: Service, site: str) -> None:
    async with httpx.AsyncClient(base_url=shared_service.url) as browser:
        answer = await browser.get("/login", params={"token": TOKEN}, headers={"sec-fetch-site": site, **HTML})
    assert answer.status_code == 200
    assert COOKIE not in answer.cookies
    assert "Sign in with this link?" in answer.text


async def test_a_link_does_not_replace_a_session(shared_service: Service) -> None:
    mine, attackers = await signed_in(shared_service), await named_token(shared_service, "of the attacker")
    for site in ("none", "cross-site"):
        async with httpx.AsyncClient(base_url=shared_service.url, cookies={COOKIE: mine}) as browser:
            answer = await browser.get("/login", params={"token": attackers}, headers={"sec-fetch-site": site, **HTML})
            assert answer.status_code == 200
            assert "You are signed in as" in answer.text
            assert "set-cookie" not in answer.headers
    async with httpx.AsyncClient(base_url=shared_service.url, cookies={COOKIE: mine}) as browser:
        again = await browser.get("/login", params={"token": TOKEN}, headers={"sec-fetch-site": "none", **HTML})
        assert again.status_code == 303  # the own link once more is no question


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}, {"origin": "null"}], ids=str
)
async def test_a_form_of_another_site_signs_nobody_in(shared_service: Service, headers: dict[str, str]) -> None:
    async with httpx.AsyncClient(base_url=shared_service.url) as browser:
        answer = await browser.post("/login", data={"token": TOKEN}, headers={**headers, **HTML})
    assert answer.status_code == 403
    assert COOKIE not in answer.cookies


async def test_the_form_that_asks_signs_in(shared_service: Service) -> None:
    async with httpx.AsyncClient(base_url=shared_service.url) as browser:
        answer = await browser.post("/login", data={"token": TOKEN}, headers={"sec-fetch-site": "same-origin", **HTML})
    assert answer.status_code == 303
    assert COOKIE in answer.cookies
