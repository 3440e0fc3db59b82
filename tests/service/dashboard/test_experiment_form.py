"""The form that starts a run or a batch: what matches, what it would take, the same as a command, and a grid as a batch."""

from __future__ import annotations

import pytest

from tests.served import Service
from tests.service.dashboard.test_run_list import browser

pytestmark = pytest.mark.anyio
GRID = {"model": ["demo-strong", "demo-weak"], "benchmark": "sample", "sample_size": "2", "repeats": "2"}


async def test_the_form_says_how_many_problems_match(shared_service: Service) -> None:
    async with browser(shared_service) as client:
        page = (await client.get("/runs/new", params={**GRID, "difficulty": "easy"})).text
        assert 'sample: <b class="number">12</b> problems match' in page
        assert "<b>4 runs</b>: 2 models × 1 benchmark × 1 instance type × 2 repeats." in page
        assert "benchyard batch run experiment.yaml" in page
        none = (await client.get("/runs/new", params={"benchmark": "sample", "ids": "nothing"})).text
        assert 'sample: <b class="number">0</b> problems match' in none
        one = (await client.get("/runs/new", params={"model": "demo-weak", "sample_size": "3", "seed": "9"})).text
        assert "benchyard run --model demo-weak --sample-size 3 --benchmark sample --seed 9" in one
        assert "/schedules/new?model=demo-weak&amp;benchmark=sample&amp;sample_size=3&amp;seed=9" in one


async def test_a_grid_becomes_a_batch_whose_cells_lead_to_its_runs(shared_service: Service) -> None:
    async with browser(shared_service) as client:
        answer = await client.post("/runs/new", data={**GRID, "name": "Grid", "tags": "g", "key": "k1"})
        assert answer.status_code == 303, answer.text
        again = await client.post("/runs/new", data={**GRID, "name": "Grid", "tags": "g", "key": "k1"})
        assert again.headers["location"] == answer.headers["location"]
        runs = (await shared_service.client.get("/api/container-runs", params={"tag": "g"})).json()["items"]
        assert len(runs) == 4
        for run in runs:
            await shared_service.until(run["id"], "completed", "failed")
        page = (await client.get(answer.headers["location"])).text
        link = f"/runs?batch={runs[0]['batch_id']}&amp;benchmark=sample&amp;q=demo-weak%20"
        assert link in page
        shown = (await client.get(link.replace("&amp;", "&"))).text
        assert shown.count("<tr data-key=") == 2
        wrong = await client.post("/runs/new", data={**GRID, "sample_size": "many"})
        assert wrong.status_code == 422
        assert "sample_size" in wrong.text
