"""Pages of a model, a dataset and a problem, and the leaderboard with its CSV and public link."""

from __future__ import annotations

import csv
import io
import json
import re
from urllib.parse import urlsplit

import httpx
import pytest

from orchestrator.datasets.catalogue import SAMPLE_FILE
from tests.served import TOKEN, Service
from tests.service.dashboard.hostile_texts import assert_harmless

pytestmark = pytest.mark.anyio
PROBLEM = "by_001_lantern_row"
NO_RUN_LINKS = re.compile(r'href="[^"]*/(runs|models|problems)/?[^"]*"')


async def measured(service: Service) -> None:
    """Two models on the same problems, one of them twice."""
    ids = [json.loads(line)["question_id"] for line in SAMPLE_FILE.read_text().splitlines()[:12]]
    runs = [
        await service.new_run(model_id=name, sample_size=None, ids=ids)
        for name in ("demo-strong", "demo-weak", "demo-strong")
    ]
    for run_id in runs:
        await service.until(run_id, "completed")


async def page(client: httpx.AsyncClient, path: str, status: int = 200) -> str:
    answer = await client.get(path, headers={"accept": "text/html"})
    assert answer.status_code == status, (path, answer.text[:500])
    assert_harmless(answer.text)
    return answer.text


async def test_pages_of_models_datasets_and_problems(service: Service) -> None:
    empty = await page(service.client, "/models/demo-strong")
    assert "No scores yet" in empty
    await measured(service)
    model = await page(service.client, "/models/demo-strong")
    for title in ("Score over time", "Score by difficulty", "Difficulty by month", "Outcomes of recent runs"):
        assert title in model
    assert "Latest scores" in model
    await page(service.client, "/models/nobody", 404)

    everything = await page(service.client, "/datasets/sample")
    assert f"id={PROBLEM}" in everything
    assert "3 / 3" in everything or "0 / 3" in everything, "results of the newest runs"
    found = await page(service.client, "/datasets/sample?q=lantern&difficulty=easy")
    assert "1 of 36" in found
    assert "No problem matches" in await page(service.client, "/datasets/sample?q=lantern&difficulty=hard")

    problem = await page(service.client, f"/problems?benchmark=sample&id={PROBLEM}")
    assert "Lantern Row" in problem
    assert "harbour wall" in problem, "the statement"
    assert "Pass rate by model" in problem
    assert problem.count('class="cell ') == 3, "one for each run"
    await page(service.client, "/problems?benchmark=sample&id=nothing", 404)


async def test_the_leaderboard_as_csv_and_at_a_public_address(service: Service) -> None:
    await measured(service)
    board = await page(service.client, "/leaderboard")
    assert "Models by problems" in board
    assert "Make public link" in board
    filtered = await page(service.client, "/leaderboard?model=WEAK")
    assert 'data-key="demo-weak"' in filtered
    assert 'data-key="demo-strong"' not in filtered
    text = (await service.client.get("/leaderboard/board.csv?benchmark=sample")).text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["model"] for row in rows] == ["demo-strong", "demo-weak"]
    easy, medium = float(rows[0]["easy"]), float(rows[0]["medium"])
    assert float(rows[0]["score"]) == pytest.approx((8 * easy + 4 * medium) / 12)
    assert rows[0]["best_rank"] == "1"

    form = {"sec-fetch-site": "same-origin"}
    async with httpx.AsyncClient(base_url=service.url, headers=form, timeout=60) as client:
        assert (await client.post("/login", data={"token": TOKEN})).status_code == 303
        assert (await client.post("/leaderboard/share")).status_code == 303
        shared = re.search(r'id="share-board">([^<?]+)', await page(client, "/leaderboard"))
        assert shared is not None
        address = urlsplit(shared[1]).path
        public = await page(service.stranger, address)
        assert "demo-strong" in public
        assert NO_RUN_LINKS.search(public) is None, "a stranger is not sent where it cannot go"
        assert (await service.stranger.get(address[:-3] + "abc")).status_code == 404
        assert (await client.post("/leaderboard/unshare")).status_code == 303
        assert (await service.stranger.get(address)).status_code == 404
