"""Signing in: the page that was asked for comes afterwards, and only a page of ours; under a sub-path too."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from orchestrator.settings import Settings
from orchestrator.sign_in.pages import page_after_login
from tests.served import TOKEN, Service, served
from tests.service.dashboard.hostile_texts import assert_harmless

ELSEWHERE = [
    "",
    "runs",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "\t//evil.example",
    " //evil.example",
    "/..//evil.example",
    "https://evil.example/",
    "https:evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "/runs\\..\\evil",
    "/runs\r\nset-cookie: a=b",
    "/login",
    "/login/?next=/login",
    "/logout",
    "http://[",
]


@pytest.mark.parametrize("root", ["", "/bench"])
@pytest.mark.parametrize("given", ELSEWHERE)
def test_what_is_no_page_of_ours_leads_to_the_overview(given: str, root: str) -> None:
    assert page_after_login(given, root) == f"{root}/"


@pytest.mark.parametrize(
    ("given", "root", "where"),
    [
        ("/", "", "/"),
        ("/runs?status=failed&model=3", "", "/runs?status=failed&model=3"),
        ("/runs?next=//x", "", "/runs?next=//x"),
        ("/runs/1", "/bench", "/bench/runs/1"),
        ("/bench/runs/1", "/bench", "/bench/runs/1"),
        ("/bench", "/bench", "/bench"),
        ("/benchmarks", "/bench", "/bench/benchmarks"),
        ("/bench/login", "/bench", "/bench/"),
        ("/compare?run=%C3%A4", "", "/compare?run=%C3%A4"),
    ],
)
def test_a_deep_link_is_kept(given: str, root: str, where: str) -> None:
    assert page_after_login(given, root) == where


@pytest.mark.anyio
async def test_the_page_that_was_asked_for_comes_after_signing_in(service: Service) -> None:
    deep = "/runs?status=failed&benchmark=sample"
    sent = await service.stranger.get(deep)
    login = sent.headers["location"]
    assert login == "/login?next=%2Fruns%3Fstatus%3Dfailed%26benchmark%3Dsample"
    form = await service.stranger.get(login)
    assert 'name="next" value="/runs?status=failed&amp;benchmark=sample"' in form.text
    wrong = await service.stranger.post("/login", data={"token": "no", "next": '"><script>x</script>'})
    assert wrong.status_code == 401
    assert "data directory" in wrong.text
    assert_harmless(wrong.text)
    right = await service.stranger.post("/login", data={"token": TOKEN, "next": deep})
    assert (right.status_code, right.headers["location"]) == (303, deep)
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    link = await service.stranger.get("/login", params={"token": TOKEN, "next": "//evil.example"})
    assert link.headers["location"] == "/"
    out = await service.stranger.post("/logout", headers={"sec-fetch-site": "same-origin"})
    assert out.headers["location"] == "/login"
    assert (await service.stranger.get("/runs")).status_code == 303


@pytest.mark.anyio
async def test_under_a_sub_path_whether_the_proxy_strips_it_or_not(new_settings: Callable[..., Settings]) -> None:
    async with served(new_settings(public_url="https://lab.example/bench/")) as service:
        headers = {"host": "lab.example", "x-forwarded-proto": "https"}
        async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=60) as client:
            for front in ("", "/bench"):
                sent = await client.get(f"{front}/runs?status=failed")
                assert sent.headers["location"] == "/bench/login?next=%2Fruns%3Fstatus%3Dfailed"
                signed = await client.post(f"{front}/login", data={"token": TOKEN, "next": "/runs?status=failed"})
                assert signed.headers["location"] == "/bench/runs?status=failed"
                cookie = signed.headers["set-cookie"]
                assert "Path=/bench;" in cookie
                assert "Secure" in cookie
                assert (await client.get(f"{front}/static/app.js")).status_code == 200
                session = {"cookie": cookie.split(";")[0]}
                ours = {**session, "origin": "https://lab.example", "host": "inner:8000"}
                made = await client.post(f"{front}/runs/new", data={"model": "demo-weak", "sample_size": "1"}, headers=ours)
                assert made.headers["location"].startswith("/bench/runs/")
                theirs = {**ours, "origin": "https://evil.example"}
                assert (await client.post(f"{front}/runs/new", headers=theirs)).status_code == 403
        made = await service.client.post("/api/container-runs", json={"model_id": "demo-weak", "sample_size": 1})
        assert made.headers["location"].startswith("/bench/api/container-runs/")
        slash = await service.client.get("/api/models/")
        assert slash.headers.get("location", "/bench/api/models") == "/bench/api/models"
        await service.engine.end_all()
