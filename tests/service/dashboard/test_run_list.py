"""The list of runs over HTTP: filters, search, sorting, columns, and actions on several runs at once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.served import TOKEN, Service

pytestmark = pytest.mark.anyio
RUNS = "/api/container-runs"


@asynccontextmanager
async def browser(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=service.url, headers={"sec-fetch-site": "same-origin"}, timeout=60) as client:
        await client.post("/login", data={"token": TOKEN})
        yield client


async def made(service: Service, **more: object) -> str:
    answer = await service.client.post(RUNS, json={"model_id": "demo-strong", "sample_size": 2, **more})
    run_id = str(answer.json()["run_id"])
    await service.until(run_id, "completed", "failed")
    return run_id


async def listed(client: httpx.AsyncClient, query: str) -> list[str]:
    answer = await client.get(f"/runs?{query}")
    assert answer.status_code == 200, answer.text
    return re.findall(r'<tr data-key="([^"]+)"', answer.text)


async def test_runs_are_filtered_searched_and_sorted(shared_service: Service) -> None:
    first = await made(shared_service, name="Zeta <i>", tags=["one", "both"], note="checks 100%_done")
    second = await made(shared_service, model_id="demo-weak", name="alpha", tags=["two", "both"])
    older, newer = sorted([first, second])  # both may be of the same millisecond
    both = [newer, older]
    async with browser(shared_service) as client:
        for query, expected in {
            "tag=both": both,
            "tag=one": [first],
            "tag=one&tag=two": both,
            "tag=both&q=zeta": [first],
            "tag=both&q=ZETA+one": [first],
            "tag=both&q=demo-weak": [second],
            "tag=both&q=100%25_done": [first],
            "tag=both&q=100_": [],
            "tag=both&sort=created": [older, newer],
            "tag=both&sort=model": [first, second],
            "tag=both&sort=-name": [second, first],
            "tag=both&sort=-score&col=score": both,
            "tag=both&status=failed": [],
            "tag=both&status=failed&status=completed": both,
            "tag=both&kind=benchmark&trigger=manual&benchmark=sample": both,
            "tag=both&dead=1": [],
            "tag=both&page=9": [],
        }.items():
            assert await listed(client, query) == expected, query
        page = (await client.get("/runs?tag=both&col=author&col=took&density=compact")).text
        assert "Zeta &lt;i&gt;" in page
        assert "compact-rows" in page
        assert "the installation&#39;s token" in page
        assert "Score and 95 %</a>" not in page


async def test_several_runs_are_tagged_retried_and_compared(shared_service: Service) -> None:
    runs = [await made(shared_service, tags=["bulk"]) for _ in range(2)]
    async with browser(shared_service) as client:
        form = {"run": runs, "back": "tag=bulk&sort=created&next=//evil"}
        answer = await client.post("/runs/bulk", data={**form, "action": "tag", "tags": "kept, bulk"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/runs?tag=bulk&sort=created&done=tag.2.0")
        assert "2 runs tagged." in (await client.get(answer.headers["location"])).text
        assert await listed(client, "tag=kept&sort=created") == sorted(runs)
        answer = await client.post("/runs/bulk", data={**form, "action": "retry"})
        assert answer.headers["location"].endswith("done=retry.0.2")
        answer = await client.post("/runs/bulk", data={**form, "action": "compare"})
        assert answer.headers["location"] == f"/compare?run={runs[0]}&run={runs[1]}"
        assert (await client.post("/runs/bulk", data={**form, "action": "tag"})).status_code == 422
        assert (await client.post("/runs/bulk", data={**form, "action": "burn"})).status_code == 422
        assert (await client.get("/runs/bulk")).headers["location"] == "/runs"


async def test_a_run_is_labelled_on_its_page(shared_service: Service) -> None:
    run_id = await made(shared_service)
    async with browser(shared_service) as client:
        form = {"name": "Named <b>", "tags": "x, y", "note": "two\r\nlines"}
        assert (await client.post(f"/runs/{run_id}/labels", data=form)).status_code == 303
        page = (await client.get(f"/runs/{run_id}")).text
        assert "Named &lt;b&gt;" in page
        assert 'href="/runs?tag=x"' in page
        assert "two\nlines" in page
        assert (await client.post(f"/runs/{run_id}/labels", data={"tags": "x" * 60})).status_code == 422
        assert (await client.post(f"/runs/{run_id}/labels", data={})).status_code == 303
    run = (await shared_service.client.get(f"{RUNS}/{run_id}")).json()
    assert (run["name"], run["tags"], run["note"]) == (None, [], None)
