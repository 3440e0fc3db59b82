"""Pages about benchmarks: all that can be run, and a form to describe one's own."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import Path as PathParameter
from starlette.responses import Response

from orchestrator.benchmarks.definition import Definition
from orchestrator.benchmarks.published.catalogue import catalogue as published_catalogue
from orchestrator.benchmarks.published.catalogue import entry as catalogue_entry
from orchestrator.benchmarks.schemas import AgreementOut, BenchmarkCheck
from orchestrator.benchmarks.service import described
from orchestrator.dashboard.shell import Frame, Page, page_router
from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.schemas import DatasetCreate
from orchestrator.datasets.wiring import fetch_dataset
from orchestrator.errors import ClientError
from orchestrator.http.policy import OWNER, READ, RUN, Policy

router = page_router()

EXAMPLE = """\
name: capitals
description: Capitals of countries.
records: capitals.csv
fields: {input: question, target: answer}
prompt: |
  {{ input }}
  Answer with the name of the city only.
judge: {by: exact, ignore: [case, punctuation]}
"""
EXAMPLE_RECORDS = """\
question,answer
What is the capital of Kenya?,Nairobi
What is the capital of Peru?,Lima
"""


@router.get("/benchmarks", policy=Policy(READ))
async def benchmarks_page(page: Page) -> Response:
    catalogue = page.context.catalogue
    infos = await asyncio.to_thread(catalogue.benchmarks)
    default = await asyncio.to_thread(catalogue.default_benchmark)
    here = {info.name for info in infos}
    offered = [entry for entry in await asyncio.to_thread(published_catalogue) if entry.name not in here]
    return page.show("benchmarks/benchmarks.html", infos=infos, default=default, offered=offered)


@router.post("/benchmarks/catalogue/{name}", policy=Policy(OWNER))
async def add_published_benchmark(page: Page, name: Annotated[str, PathParameter(max_length=64)]) -> Response:
    """Adds a benchmark of the catalogue; the page of datasets shows how far it is."""
    await asyncio.to_thread(catalogue_entry, name)
    context = page.context
    slug = (await page.raw_form()).get("judge", "").strip()
    judge = (await context.runs.find_model(slug)).slug if slug else None
    body = DatasetCreate(name=name)
    await fetch_dataset(body, context.settings, context.dataset_jobs, context.benchmark_files, judge)
    return page.go("/datasets")


@router.get("/benchmarks/new", policy=Policy(OWNER))
async def new_benchmark_page(page: Page) -> Response:
    return _form(page, {"text": EXAMPLE, "records": EXAMPLE_RECORDS})


@router.post("/benchmarks/new", policy=Policy(OWNER, deadline=False))
async def describe_benchmark(page: Page) -> Response:
    """Checks the description, or adds the benchmark if the form says so."""
    entered = await page.raw_form()
    try:
        text = entered.get("text", "").replace("\r\n", "\n")
        python = entered.get("form") == "python"
        given = (None, None, text, "benchmark.py") if python else (None, text)
        definition = await asyncio.to_thread(described, *given)
        records = entered.get("records", "").replace("\r\n", "\n")
        if entered.get("action") == "add":
            await asyncio.to_thread(_start, page, definition, records)
            return page.go("/datasets")
        checked = await asyncio.to_thread(_check, page, definition, records)
    except ClientError as error:
        return _form(page, entered, status=422, error=error.detail)
    return _form(page, entered, check=BenchmarkCheck.of(definition, checked))


@router.get("/benchmarks/{name}", policy=Policy(READ))
async def benchmark_page(page: Page, name: Annotated[str, PathParameter(max_length=64)]) -> Response:
    info = await asyncio.to_thread(page.context.catalogue.get, name)
    agreements = [AgreementOut.of(measured) for measured in await page.context.agreements.measured(name)]
    return page.show("benchmarks/benchmark.html", info=info, agreements=agreements)


@router.post("/benchmarks/{name}/agreement", policy=Policy(RUN, spends=True))
async def measure_agreement(page: Page, name: Annotated[str, PathParameter(max_length=64)]) -> Response:
    """Has the judge grade the labelled answers."""
    entered = await page.raw_form()
    run_id = await page.context.agreements.measure(name, entered.get("model", "").strip() or None)
    return page.go(f"/runs/{run_id}")


def _check(page: Frame, definition: Definition, records: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return page.context.benchmark_files.check(definition, _written(definition, records, Path(folder)))


def _start(page: Frame, definition: Definition, records: str) -> None:
    folder = tempfile.TemporaryDirectory()
    try:
        files = _written(definition, records, Path(folder.name))
        build = page.context.benchmark_files.build
        page.context.dataset_jobs.start(definition.name, lambda report: build(definition, files, report), folder.cleanup)
    except BaseException:
        folder.cleanup()
        raise


def _written(definition: Definition, records: str, folder: Path) -> dict[str, Path]:
    """The records of the form as the one file that the description names."""
    names = list(definition.records.files)
    if not names:
        return {}
    if len(names) > 1:
        raise BadSource("A form can give one file of records; add this benchmark with `benchyard benchmarks add FILE`.")
    if not records.strip():
        raise BadSource(f"The description names the file {names[0]}; paste its lines into the field for records.")
    path = folder / f"records{Path(names[0]).suffix[:10]}"
    path.write_text(records, encoding="utf-8")
    return {names[0]: path}


def _form(page: Frame, entered: dict[str, str], status: int = 200, **values: object) -> Response:
    shown = {"check": None, "error": None, **values}
    return page.show("benchmarks/new_benchmark.html", status, entered=entered, **shown)
