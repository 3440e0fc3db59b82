"""Results as files: complete, streamed, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from orchestrator.engines.fake.container import FakeContainer
from tests.served import RunnerClient, Service

pytestmark = pytest.mark.anyio

EVIL = '=HYPERLINK("http://x","y"),\n"quoted"'


async def nasty(container: FakeContainer) -> int:
    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        await runner.claim()
        items = runner.open_items()
        for item in items:
            more: dict[str, Any] = {"outcome": "passed", "code": EVIL, "detail": "-1+1", "answer": "@SUM"}
            answer = await runner.send(runner.next("progress", item={**item, **more}))
            assert answer.status_code == 200
        await runner.send(runner.next("complete", items=len(items)))
        return 0
    finally:
        await runner.close()


@pytest.fixture
async def run_id(shared_service: Service) -> str:
    shared_service.engine.behaviour = nasty
    run_id = await shared_service.new_run(sample_size=4, samples_per_problem=30)
    await shared_service.until(run_id, "completed")
    return run_id


async def export(service: Service, run_id: str, form: str) -> str:
    answer = await service.client.get(f"/api/container-runs/{run_id}/export", params={"format": form})
    assert answer.status_code == 200, answer.text
    assert f"{run_id}.{form}" in answer.headers["content-disposition"]
    return answer.text


async def test_every_format_has_every_item(shared_service: Service, run_id: str) -> None:
    rows = [json.loads(line) for line in (await export(shared_service, run_id, "jsonl")).splitlines()]
    assert [row["position"] for row in rows] == list(range(120))
    assert (rows[0]["code"], rows[0]["answer"]) == (EVIL, "@SUM")
    log = json.loads(await export(shared_service, run_id, "json"))
    assert log["format"] == "benchyard-run-1"
    assert log["run"]["plan"][0]["pack_digest"].startswith("sha256:")
    assert log["scores"]["sample"]["n"] == 120
    assert log["items"] == rows
    table = list(csv.DictReader(io.StringIO(await export(shared_service, run_id, "csv"), newline="")))
    assert len(table) == 120
    assert [int(row["position"]) for row in table] == list(range(120))


async def test_no_cell_is_a_formula(shared_service: Service, run_id: str) -> None:
    table = list(csv.DictReader(io.StringIO(await export(shared_service, run_id, "csv"), newline="")))
    assert (table[0]["code"], table[0]["detail"]) == (f"'{EVIL}", "'-1+1")
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in table for cell in row.values())


async def test_a_run_without_results_is_exported_too(shared_service: Service) -> None:
    missing = await shared_service.client.get("/api/container-runs/nope/export")
    odd = await shared_service.client.get("/api/container-runs/nope/export?format=xlsx")
    assert (missing.status_code, odd.status_code) == (404, 422)
    run_id = await shared_service.new_run(priority=-5, instance_type="lite")
    log = json.loads(await export(shared_service, run_id, "json"))
    assert log["run"]["id"] == run_id
