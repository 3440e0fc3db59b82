"""REST for datasets: add, list, verify, remove. Adding continues in the background; its progress can be polled."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from orchestrator.datasets import wiring
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import UnknownBenchmark
from orchestrator.datasets.fetching import library
from orchestrator.datasets.jobs import Job
from orchestrator.datasets.preview import MAX_RECORDS
from orchestrator.datasets.schemas import (
    DatasetCreate,
    DatasetJobOut,
    DatasetOut,
    DatasetRecordOut,
    DatasetsOut,
    DatasetStatisticsOut,
)
from orchestrator.grading.uploads import announced_size
from orchestrator.http.context import Context
from orchestrator.http.policy import OWNER, READ, Body, Policy, Router

router = Router(prefix="/api/datasets", tags=["datasets"])

Name = Annotated[str, Path(min_length=1, max_length=64, description="Name of a dataset, which is that of its benchmark.")]
FILE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file as it is.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("", policy=Policy(READ))
async def list_datasets(context: Context) -> DatasetsOut:
    """The datasets of this installation, and those being added since the service started."""
    infos = await asyncio.to_thread(context.catalogue.benchmarks)
    return DatasetsOut(
        items=[DatasetOut.of(info) for info in infos], jobs=[job_out(job) for job in context.dataset_jobs.all()]
    )


@router.post("", policy=Policy(OWNER), status_code=202)
async def add_dataset(body: DatasetCreate, context: Context, response: Response) -> DatasetJobOut:
    """Download and build a dataset: the public files of a known benchmark, or those at a URL."""
    job = await wiring.fetch_dataset(body, context.settings, context.dataset_jobs, context.benchmark_files)
    response.headers["location"] = f"/api/datasets/{body.name}"
    return job_out(job)


@router.put("/{name}", policy=Policy(OWNER, body=Body.DATASET, deadline=False), status_code=202, openapi_extra=FILE_BODY)
async def upload_dataset(
    name: Name,
    request: Request,
    context: Context,
    response: Response,
    filename: Annotated[str, Query(min_length=1, max_length=200)] = "problems.jsonl",
    format: Annotated[str | None, Query(max_length=64)] = None,
    sha256: Annotated[str | None, Query(pattern=r"^[0-9a-fA-F]{64}$")] = None,
) -> DatasetJobOut:
    """Build a dataset from the file in the body. 413 if it is larger than allowed, 507 if the disk is too full."""
    await asyncio.to_thread(library.check, library.Order(name, source=filename, form=format))
    context.dataset_jobs.refuse_second(name)
    path = await asyncio.to_thread(context.uploads.place, filename)
    remove = partial(shutil.rmtree, path.parent, ignore_errors=True)
    try:
        await context.uploads.write(path, request.stream(), announced_size(request.headers))
        data_dir = context.settings.data.absolute()
        order = library.Order(name, source=str(path), form=format, sha256=sha256)
        work = partial(library.add, data_dir, order, room=context.settings.room)
        job = context.dataset_jobs.start(name, lambda report: work(report=report), remove)
    except BaseException:
        remove()
        raise
    response.headers["location"] = f"/api/datasets/{name}"
    return job_out(job)


@router.get("/{name}", policy=Policy(READ, deadline=False))
async def get_dataset(
    name: Name,
    context: Context,
    records: Annotated[int, Query(ge=0, le=MAX_RECORDS, description="How many of its problems to show.")] = 0,
) -> DatasetJobOut:
    """A dataset with its statistics and some of its problems, or the progress of adding it."""
    job = next((job for job in context.dataset_jobs.all() if job.name == name), None)
    shown = job_out(job) if job else DatasetJobOut(name=name, state="done")
    try:
        return await asyncio.to_thread(_with_content, shown, context.catalogue, records)
    except UnknownBenchmark:
        if job is None:
            raise
        return shown


def _with_content(shown: DatasetJobOut, catalogue: Catalogue, records: int) -> DatasetJobOut:
    name = shown.name
    counts = asdict(catalogue.statistics(name))
    return shown.model_copy(
        update={
            "dataset": DatasetOut.of(catalogue.get(name)),
            "statistics": DatasetStatisticsOut(**counts, flagged=len(catalogue.flagged(name))),
            "records": [DatasetRecordOut.of(preview) for preview in catalogue.preview(name, records)] if records else [],
        }
    )


@router.post("/{name}/verify", policy=Policy(OWNER, deadline=False))
async def verify_dataset(name: Name, context: Context) -> DatasetOut:
    """Read the whole dataset and compare its digest; 500 if it is damaged."""
    await asyncio.to_thread(context.catalogue.verify, name)
    return DatasetOut.of(await asyncio.to_thread(context.catalogue.get, name))


@router.delete("/{name}", policy=Policy(OWNER, deadline=False), status_code=204)
async def remove_dataset(name: Name, context: Context) -> None:
    """Delete a dataset. Results stay; runs that still need its problems fail."""
    await wiring.remove_dataset(name, context.catalogue)


def job_out(job: Job) -> DatasetJobOut:
    facts = {name: value for name, value in vars(job).items() if name in DatasetJobOut.model_fields}
    return DatasetJobOut(**{**facts, "job_id": job.id, "left_out_lines": list(job.left_out_lines)})
