"""Nobody is offered what they may not do: every form and every link to a form on every page, for every scope."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import httpx
import pytest

from orchestrator.http.route_table import RouteTable
from orchestrator.scopes import Scope
from tests.served import Service

pytestmark = pytest.mark.anyio

PAGES = ["/", "/runs", "/batches", "/leaderboard", "/schedules", "/models", "/datasets", "/fleet", "/keys", "/limits"]
FORM = re.compile(r'<form[^>]*method="post"[^>]*action="([^"]+)"')
LINK = re.compile(r'href="([^"]*/new(?:\?[^"]*)?)"')
SCHEDULE = {"model_id": "demo-weak", "cron_expression": "0 9 * * *", "sample_size": 2, "benchmarks": ["sample"]}


@pytest.fixture
async def filled(service: Service) -> tuple[Service, list[str]]:
    run_id = await service.new_run(sample_size=1)
    await service.until(run_id, "completed")
    made = await service.client.post("/api/schedules", json=SCHEDULE)
    assert made.status_code in (200, 201), made.text
    batch = {"models": ["demo-weak"], "benchmarks": ["sample"], "sample_size": 1}
    batch_id = (await service.client.post("/api/batches", json=batch)).json()["batch_id"]
    return service, [*PAGES, f"/runs/{run_id}", f"/batches/{batch_id}", f"/schedules/{made.json()['model_id']}"]


async def test_every_form_on_every_page_may_be_sent(filled: tuple[Service, list[str]]) -> None:
    service, pages = filled
    routes: RouteTable = service.app.state.routes
    found: dict[str, set[str]] = {}
    for scope in ("read", "run", "schedule", "admin"):
        token = (await service.client.post("/api/tokens", json={"name": scope, "scope": scope})).json()["token"]
        holds = Scope.OWNER if scope == "admin" else Scope(scope)  # one that the installation's own token made
        offered = found[scope] = set()
        headers = {"accept": "text/html", "authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=60) as client:
            for path in pages:
                page = await client.get(path)
                assert page.status_code == 200, (path, page.text[:300])
                actions = [urlsplit(each).path for each in FORM.findall(page.text) + LINK.findall(page.text)]
                offered |= set(actions)
                needs = {each: routes.find("POST", each).policy.scope for each in actions}
                refused = [each for each, needed in needs.items() if needed is None or not holds.allows(needed)]
                assert refused == [], (scope, path)
    assert found["read"] == {"/logout"}
    assert {"/runs/new"} <= found["run"] - {"/schedules/new", "/models"}
    assert {"/schedules/new"} <= found["schedule"]
    assert {"/models", "/models/sync", "/datasets", "/limits"} <= found["admin"]
