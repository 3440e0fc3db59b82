"""REST for the benchmarks of this installation, and for describing new ones by a file."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import Path as PathParameter
from fastapi import Query, Request, Response

from orchestrator.benchmarks.definition import Definition
from orchestrator.benchmarks.published.catalogue import built_in_text, catalogue, entry, published_text
from orchestrator.benchmarks.schemas import (
    AgreementCreate,
    AgreementCreated,
    AgreementOut,
    BenchmarkCheck,
    BenchmarkDescription,
    BenchmarkOut,
    BenchmarkTrial,
    CatalogueChoice,
    CatalogueEntry,
    TriedAnswerOut,
    UploadedFile,
)
from orchestrator.benchmarks.service import described, renamed
from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.routes import FILE_BODY, job_out
from orchestrator.datasets.schemas import DatasetCreate, DatasetJobOut
from orchestrator.datasets.wiring import fetch_dataset
from orchestrator.grading.uploads import announced_size
from orchestrator.http.context import Context, Services
from orchestrator.http.policy import OWNER, READ, RUN, Audit, Body, Policy, Router
from orchestrator.http.schemas import Page

router = Router(prefix="/api/benchmarks", tags=["benchmarks"])

Name = Annotated[str, PathParameter(min_length=1, max_length=64, description="Name of a benchmark.")]


@router.get("", policy=Policy(READ))
async def list_benchmarks(context: Context) -> Page[BenchmarkOut]:
    """The benchmarks that can be run here."""
    infos = await asyncio.to_thread(context.catalogue.benchmarks)
    default = await asyncio.to_thread(context.catalogue.default_benchmark)
    return Page(items=[BenchmarkOut.of(info, default) for info in infos])


@router.get("/catalogue", policy=Policy(READ))
async def list_catalogue(context: Context) -> Page[CatalogueEntry]:
    """Published benchmarks that can be added by their names."""
    infos = {info.name: info for info in await asyncio.to_thread(context.catalogue.benchmarks)}
    return Page(items=[CatalogueEntry.of(entry, infos.get(entry.name)) for entry in await asyncio.to_thread(catalogue)])


@router.get("/catalogue/{name}", policy=Policy(READ))
async def get_catalogue_entry(name: Name, context: Context) -> CatalogueEntry:
    """One of them, with the file that describes it, as a start for your own."""
    shown = await asyncio.to_thread(entry, name)
    infos = await asyncio.to_thread(context.catalogue.benchmarks)
    added = next((info for info in infos if info.name == name), None)
    text = await asyncio.to_thread(built_in_text if shown.definition is None else published_text, name)
    return CatalogueEntry.of(shown, added, text)


@router.post("/catalogue/{name}", policy=Policy(OWNER), status_code=202)
async def add_published_benchmark(
    name: Name, context: Context, response: Response, choice: CatalogueChoice | None = None
) -> DatasetJobOut:
    """Add a published benchmark: its data are downloaded and built. `GET /api/datasets/{name}` tells how far it is."""
    await asyncio.to_thread(entry, name)
    judge = (await context.runs.find_model(choice.judge)).slug if choice and choice.judge else None
    body = DatasetCreate(name=name)
    job = await fetch_dataset(body, context.settings, context.dataset_jobs, context.benchmark_files, judge)
    response.headers["location"] = f"/api/datasets/{name}"
    return job_out(job)


@router.get("/{name}", policy=Policy(READ))
async def get_benchmark(name: Name, context: Context) -> BenchmarkOut:
    """A benchmark, with its description if a file describes it."""
    info = await asyncio.to_thread(context.catalogue.get, name)
    return BenchmarkOut.of(info, await asyncio.to_thread(context.catalogue.default_benchmark))


@router.post("/files", policy=Policy(OWNER, body=Body.DATASET, deadline=False), status_code=201, openapi_extra=FILE_BODY)
async def upload_file(
    request: Request, context: Context, filename: Annotated[str, Query(min_length=1, max_length=200)]
) -> UploadedFile:
    """Upload a file of records for a description. It is kept for an hour."""
    handle = await context.uploads.keep(filename, request.stream(), announced_size(request.headers))
    return UploadedFile(file=handle, filename=filename)


@router.post("/check", policy=Policy(OWNER, audit=Audit.REFUSALS, deadline=False))
async def check_benchmark(body: BenchmarkDescription, context: Context) -> BenchmarkCheck:
    """Read a description, and show its first three prompts and how a right and a wrong answer would score."""
    definition = await asyncio.to_thread(_definition, body)
    files = await asyncio.to_thread(_files, context, body)
    return BenchmarkCheck.of(definition, await asyncio.to_thread(context.benchmark_files.check, definition, files))


@router.post("/try", policy=Policy(OWNER, audit=Audit.REFUSALS, deadline=False))
async def try_benchmark(body: BenchmarkTrial, context: Context) -> Page[TriedAnswerOut]:
    """Have a Python file score answers in the sandbox. Nothing is stored, and no model is asked."""
    definition = await asyncio.to_thread(_definition, body)
    files = await asyncio.to_thread(_files, context, body)
    answers = [(answer.problem_id, answer.text) for answer in body.answers]
    scores = await asyncio.to_thread(context.benchmark_files.scores, definition, files, answers)
    return Page(items=[TriedAnswerOut(**vars(score)) for score in scores])


@router.post("", policy=Policy(OWNER), status_code=202)
async def add_benchmark(body: BenchmarkDescription, context: Context, response: Response) -> DatasetJobOut:
    """Add a benchmark by its description. One of the same name is replaced once the new one is complete."""
    definition = await asyncio.to_thread(_definition, body)
    files = await asyncio.to_thread(_files, context, body)
    if missing := context.benchmark_files.missing(definition, files):
        raise BadSource(f"The description names files that were not uploaded: {', '.join(missing)}.")

    def discard() -> None:
        for path in files.values():
            context.uploads.discard(path)

    work = partial(context.benchmark_files.build, definition, files)
    job = context.dataset_jobs.start(definition.name, lambda report: work(report=report), discard)
    response.headers["location"] = f"/api/datasets/{definition.name}"
    return job_out(job)


@router.post("/{name}/agreement", policy=Policy(RUN, spends=True), status_code=202)
async def measure_agreement(name: Name, body: AgreementCreate, context: Context, response: Response) -> AgreementCreated:
    """Grade the labelled answers of a benchmark in a run, by its judge or by another model with the same rubric."""
    run_id = await context.agreements.measure(name, body.model, body.budget_usd)
    response.headers["location"] = f"/api/container-runs/{run_id}"
    info = await asyncio.to_thread(context.catalogue.get, name)
    return AgreementCreated(run_id=run_id, answers=len(info.labelled))


@router.get("/{name}/agreement", policy=Policy(READ))
async def list_agreements(name: Name, context: Context) -> Page[AgreementOut]:
    """How far judges agree with people on the labelled answers of a benchmark: what was measured, the newest first."""
    await asyncio.to_thread(context.catalogue.get, name)
    return Page(items=[AgreementOut.of(measured) for measured in await context.agreements.measured(name)])


def _definition(body: BenchmarkDescription) -> Definition:
    definition = described(body.definition, body.text, body.python, body.filename)
    return definition if body.name is None else renamed(definition, body.name)


def _files(context: Services, body: BenchmarkDescription) -> dict[str, Path]:
    return {name: context.uploads.kept(handle) for name, handle in body.files.items()}
