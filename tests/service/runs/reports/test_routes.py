"""Results as files: complete, streamed, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from pyarrow import parquet

from orchestrator.engines.fake.container import FakeContainer
from tests.served import RunnerClient, Service

pytestmark = pytest.mark.anyio

EVIL = '=HYPERLINK("http://x","y"),\n"quoted"'
HOSTILE = "]]>\x00\x1b[31m </script>"


async def nasty(container: FakeContainer) -> int:
    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        await runner.claim()
        items = runner.open_items()
        for item in items:
            more: dict[str, Any] = {"outcome": "passed", "code": EVIL, "detail": "-1+1", "answer": "@SUM", "prompt": HOSTILE}
            if item["sample_index"] == 1:
                more |= {"outcome": "provider_error", "detail": HOSTILE}
            answer = await runner.send(runner.next("progress", item={**item, **more}))
            assert answer.status_code == 200
        await runner.send(runner.next("complete", items=len(items)))
        return 0
    finally:
        await runner.close()


@pytest.fixture(scope="module")
async def run_id(shared_service: Service) -> str:
    shared_service.engine.behaviour = nasty
    run_id = await shared_service.new_run(sample_size=4, samples_per_problem=30)
    await shared_service.until(run_id, "completed")
    return run_id


async def export(service: Service, run_id: str, form: str) -> httpx.Response:
    answer = await service.client.get(f"/api/container-runs/{run_id}/export", params={"format": form})
    assert answer.status_code == 200, answer.text
    ending = {"junit": "junit.xml", "inspect": "eval"}.get(form, form)
    assert f'"benchyard-{run_id}.{ending}"' in answer.headers["content-disposition"]
    return answer


async def test_every_format_has_every_item(shared_service: Service, run_id: str) -> None:
    rows = [json.loads(line) for line in (await export(shared_service, run_id, "jsonl")).text.splitlines()]
    assert [row["position"] for row in rows] == list(range(120))
    assert (rows[0]["code"], rows[0]["answer"]) == (EVIL, "@SUM")
    log = (await export(shared_service, run_id, "json")).json()
    assert log["format"] == "benchyard-run-1"
    assert log["run"]["plan"][0]["pack_digest"].startswith("sha256:")
    assert log["scores"]["sample"]["n"] == 116
    named = {"run_id": run_id, "model": "demo-strong"}
    assert [{**item, **named} for item in log["items"]] == rows
    table = list(csv.DictReader(io.StringIO((await export(shared_service, run_id, "csv")).text, newline="")))
    assert len(table) == 120
    assert [int(row["position"]) for row in table] == list(range(120))


async def test_no_cell_is_a_formula(shared_service: Service, run_id: str) -> None:
    table = list(csv.DictReader(io.StringIO((await export(shared_service, run_id, "csv")).text, newline="")))
    assert (table[0]["code"], table[0]["detail"]) == (f"'{EVIL}", "'-1+1")
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in table for cell in row.values())


async def test_a_run_without_results_is_exported_too(shared_service: Service) -> None:
    missing = await shared_service.client.get("/api/container-runs/nope/export")
    odd = await shared_service.client.get("/api/container-runs/nope/export?format=xlsx")
    assert (missing.status_code, odd.status_code) == (404, 422)
    run_id = await shared_service.new_run(priority=-5, instance_type="lite")
    log = (await export(shared_service, run_id, "json")).json()
    assert log["run"]["id"] == run_id


async def test_parquet_has_typed_columns_and_full_texts(shared_service: Service, run_id: str) -> None:
    table = parquet.read_table(io.BytesIO((await export(shared_service, run_id, "parquet")).content))
    rows = table.to_pylist()
    assert [row["position"] for row in rows] == list(range(120))
    first = rows[0]
    assert (first["answer"], first["code"], first["model"], first["fragile"]) == ("@SUM", EVIL, "demo-strong", False)
    assert first["prompt"] == HOSTILE
    assert first["created_at"].tzinfo is not None
    assert {str(table.schema.field(name).type) for name in ("cpu_s", "score")} == {"double"}


async def test_junit_counts_what_it_shows(shared_service: Service, run_id: str) -> None:
    root = ElementTree.fromstring((await export(shared_service, run_id, "junit")).content)
    (suite,) = root
    assert (suite.get("name"), suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("sample", "120", "4", "0")
    assert len(suite.findall("testcase")) == 120
    assert len(suite.findall("testcase/error")) == 4


async def test_an_inspect_log_is_complete(shared_service: Service, run_id: str) -> None:
    """Inspect's own reader is in test_inspect_reader.py; here, that nothing is missing."""
    archive = zipfile.ZipFile(io.BytesIO((await export(shared_service, run_id, "inspect")).content))
    assert archive.testzip() is None
    header, summaries = json.loads(archive.read("header.json")), json.loads(archive.read("summaries.json"))
    assert (header["status"], header["eval"]["model"], header["eval"]["config"]["epochs"]) == ("success", "demo-strong", 30)
    assert json.loads(archive.read("_journal/start.json"))["eval"] == header["eval"]
    names = {f"samples/{part['id']}_epoch_{part['epoch']}.json" for part in summaries}
    assert len(names) == 120
    assert names == {name for name in archive.namelist() if name.startswith("samples/")}
    broken = [part for part in summaries if "error" in part]
    assert [part["epoch"] for part in broken] == [2] * 4


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
async def test_several_runs_are_one_table(shared_service: Service, run_id: str, form: str) -> None:
    other = await shared_service.new_run(sample_size=1, model_id="demo-weak")
    await shared_service.until(other, "completed")
    query = {"run_id": [run_id, other, run_id], "format": form}
    answer = await shared_service.client.get("/api/exports", params=query)
    assert answer.status_code == 200, answer.text
    assert "2-runs" in answer.headers["content-disposition"]
    if form == "parquet":
        rows = parquet.read_table(io.BytesIO(answer.content)).to_pylist()
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    else:
        rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["run_id"] for row in rows] == [run_id] * 120 + [other]
    assert {row["run_id"]: row["model"] for row in rows} == {run_id: "demo-strong", other: "demo-weak"}


async def test_what_a_format_cannot_hold_is_a_sentence(shared_service: Service, run_id: str) -> None:
    client = shared_service.client
    junit = await client.get("/api/exports", params={"run_id": [run_id], "format": "junit"})
    assert (junit.status_code, "holds one run" in junit.json()["detail"]) == (422, True)
    assert (await client.get("/api/exports", params={"run_id": [run_id, "nope"]})).status_code == 404
    assert (await client.get("/api/exports")).status_code == 422
    assert (await client.get("/api/exports", params={"run_id": [run_id] * 201})).status_code == 422
