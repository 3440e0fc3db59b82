"""Dataset pages: the list, one dataset with its problems, one problem, and forms to add, verify and remove datasets."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.datasets import wiring
from orchestrator.datasets.catalogue import SAMPLE
from orchestrator.datasets.errors import PackDamaged, UnknownBenchmark, UnknownProblem
from orchestrator.datasets.fetching.sources import FORMATS, LATEST_RELEASE, LCB_FILES
from orchestrator.datasets.packs.pack import Entry
from orchestrator.datasets.packs.selection import flaw
from orchestrator.datasets.schemas import DatasetCreate
from orchestrator.datasets.views import PAGE, SORTS, ProblemFilter, by_month, problem_view, tallies
from orchestrator.errors import ClientError, NotFound
from orchestrator.http.policy import OWNER, READ, Policy
from orchestrator.runs.views.statement import MOST_BYTES, Statement, statement

router = page_router()

RELEASES = [LATEST_RELEASE, *(f"release_v{number}" for number in range(len(LCB_FILES), 0, -1))]
SHOWN_JOBS = 20
SHOWN_RECORDS = 3

Name = Annotated[str, Path(max_length=64)]
Word = Annotated[str, Query(max_length=100)]


@router.get("/datasets", policy=Policy(READ))
async def datasets_page(page: Page) -> Response:
    return await _show(page)


@router.get("/datasets/{name}", policy=Policy(READ, deadline=False))
async def dataset_page(
    page: Page,
    name: Name,
    q: Annotated[str, Query(max_length=200)] = "",
    difficulty: Word = "",
    platform: Word = "",
    category: Word = "",
    flagged: Annotated[str, Query(max_length=3)] = "",
    sort: Annotated[str, Query(max_length=20)] = "",
    start: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """Facts, statistics, and the problems to search and filter."""
    catalogue = page.context.catalogue
    wanted = ProblemFilter(q.strip(), difficulty, platform, category, bool(flagged), sort if sort in SORTS else "")

    def content() -> dict[str, Any]:
        entries = catalogue.entries(name)
        previews = catalogue.preview(name, SHOWN_RECORDS)
        return {
            "info": catalogue.get(name),
            "statistics": catalogue.statistics(name),
            "flagged": catalogue.flagged(name),
            "found": wanted.of(entries),
            "figure_by_month": by_month(entries),
            "previews": [(it.entry, json.dumps(it.record, indent=2, ensure_ascii=False)) for it in previews],
        }

    values = await asyncio.to_thread(content)
    shown = values["found"][start : start + PAGE]
    passed, runs = await page.context.db.read(lambda session: tallies(session, name, shown))
    return page.show(
        "datasets/dataset.html", wanted=wanted, start=start, size=PAGE, shown=shown, passed=passed, runs=runs, **values
    )


@router.get("/problems", policy=Policy(READ))
async def problem_page(
    page: Page,
    benchmark: Annotated[str, Query(max_length=200)],
    problem: Annotated[str, Query(max_length=300, alias="id")],
) -> Response:
    """One problem: its text, and what the newest runs made of it."""
    catalogue = page.context.catalogue

    def content() -> tuple[Entry | None, Statement | None, str | None]:
        try:
            info = catalogue.get(benchmark)
            entry = next((entry for entry in catalogue.entries(benchmark) if entry.id == problem), None)
            record = catalogue.small_record(benchmark, info.pack_digest, problem, MOST_BYTES) if entry else None
        except (UnknownBenchmark, UnknownProblem, PackDamaged):
            return None, None, None
        return entry, statement(record, ""), flaw(entry) if entry else None

    entry, text, why_faulty = await asyncio.to_thread(content)
    view = await page.context.db.read(lambda session: problem_view(session, benchmark, problem))
    if entry is None and not view.rows:
        raise NotFound("No dataset has this problem, and no run has a result for it.")
    return page.show(
        "datasets/problem.html",
        benchmark=benchmark,
        problem=problem,
        entry=entry,
        statement=text,
        faulty=why_faulty,
        view=view,
    )


@router.post("/datasets", policy=Policy(OWNER))
async def add_dataset(page: Page) -> Response:
    """Adds a known benchmark or a URL. Files are uploaded to the API, which streams them."""
    given = {name: values[-1] for name, values in (await page.form()).items() if values[-1]}
    try:
        body = DatasetCreate.model_validate({name: given[name] for name in DatasetCreate.model_fields if name in given})
        context = page.context
        await wiring.fetch_dataset(body, context.settings, context.dataset_jobs, context.benchmark_files)
    except (ValidationError, ClientError) as error:
        return await _show(page, 422, given=given, error=said(error))
    return page.go("/datasets")


@router.post("/datasets/{name}/verify", policy=Policy(OWNER, deadline=False))
async def verify_dataset(page: Page, name: Name) -> Response:
    try:
        await asyncio.to_thread(page.context.catalogue.verify, name)
    except PackDamaged as error:
        return await _show(page, error.status, error=error.detail)
    info = await asyncio.to_thread(page.context.catalogue.get, name)
    return await _show(page, notice=f"{name} is whole: all {info.problems} problems were read and match its digest.")


@router.post("/datasets/{name}/remove", policy=Policy(OWNER, deadline=False))
async def remove_dataset(page: Page, name: Name) -> Response:
    await wiring.remove_dataset(name, page.context.catalogue)
    return page.go("/datasets")


async def _show(
    page: Frame,
    status: int = 200,
    *,
    given: dict[str, str] | None = None,
    error: str | None = None,
    notice: str | None = None,
) -> Response:
    catalogue = page.context.catalogue
    infos = await asyncio.to_thread(catalogue.benchmarks)
    flagged = {info.name: len(await asyncio.to_thread(catalogue.flagged, info.name)) for info in infos}
    jobs = page.context.dataset_jobs.all()[: -SHOWN_JOBS - 1 : -1]
    return page.show(
        "datasets/datasets.html",
        status,
        infos=infos,
        flagged=flagged,
        damaged=await asyncio.to_thread(catalogue.damaged),
        default=await asyncio.to_thread(catalogue.default_benchmark),
        jobs=jobs,
        busy=any(job.state == "running" for job in jobs),
        bundled=SAMPLE,
        formats=FORMATS,
        releases=RELEASES,
        given=given or {},
        error=error,
        notice=notice,
    )
