"""Model pages: the catalogue, prices with their dates, the providers' lists, and a form to add a model."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Path
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.datasets.entries import known_entries
from orchestrator.errors import ClientError
from orchestrator.http.policy import OWNER, READ, Policy
from orchestrator.models import queries as model_queries
from orchestrator.models.schemas import ModelCreate, ModelPatch
from orchestrator.models.service import PRICES
from orchestrator.models.sync import SyncResult
from orchestrator.models.tables import LlmModel
from orchestrator.models.views.page import ModelPage, model_page, runs_of
from orchestrator.prices.age import age_warning
from orchestrator.prices.entries import price_list_summary
from orchestrator.prices.service import PriceUpdate
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.queries import RunFilter
from orchestrator.runs.views.runs import RunLine, run_line
from runner.contract.run_spec import Protocol

router = page_router()

SHOWN_RUNS = 10


@router.get("/models", policy=Policy(READ))
async def models_page(page: Page) -> Response:
    return await _show(page)


@router.get("/models/{model_id}", policy=Policy(READ))
async def show_model(page: Page, model_id: Annotated[str, Path(max_length=200)]) -> Response:
    """One model, by id or slug."""
    context = page.context
    model = await context.runs.find_model(model_id)
    runs = await context.db.read(lambda s: runs_of(s, model.id or 0))
    names = {name for run in runs for name in run.benchmarks}
    entries = await asyncio.to_thread(known_entries, context.catalogue, sorted(names))
    now = context.clock.now()

    def read(session: Session) -> tuple[ModelPage, list[RunLine], int]:
        rows = page_queries.runs(session, RunFilter(model_id=model.id), limit=SHOWN_RUNS)
        lines = [run_line(row, model.slug, context.waiting_for(row.id)) for row in rows]
        return model_page(session, model, runs, entries, now), lines, model_queries.run_count(session, model.id or 0)

    view, lines, count = await context.db.read(read)
    return page.show(
        "models/model.html",
        model=model,
        view=view,
        lines=lines,
        count=count,
        notes=context.request_notes(model.provider, model.name),
        warning=age_warning(model.prices_entered_at, now, free=model.is_free),
    )


@router.post("/models", policy=Policy(OWNER))
async def add_model(page: Page) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items() if values[-1]}
    try:
        body = ModelCreate.model_validate(_typed(form))
        await page.context.models.add(body.values())
    except (ValidationError, ClientError) as error:
        return await _show(page, form=form, error=said(error))
    return page.go("/models")


@router.post("/models/sync", policy=Policy(OWNER))
async def sync(page: Page) -> Response:
    """Responds with a page that shows the result instead of a redirect."""
    return await _show(page, synced=await page.context.sync_models())


@router.post("/models/price-lists", policy=Policy(OWNER))
async def import_prices(page: Page) -> Response:
    """Responds with a page that shows what was taken and what was left out."""
    form = await page.form()
    try:
        updated = await page.context.price_lists.update((form.get("list") or [""])[-1].encode(), "pasted on the models page")
    except ClientError as error:
        return await _show(page, error=said(error))
    return await _show(page, updated=updated)


@router.post("/models/{model_id}/prices", policy=Policy(OWNER))
async def change_prices(page: Page, model_id: int) -> Response:
    """An empty field means that the price is unknown."""
    form = {name: values[-1] for name, values in (await page.form()).items()}
    try:
        prices = _typed({name: form[name] for name in PRICES if form.get(name)})
        body = ModelPatch.model_validate({**dict.fromkeys(PRICES), **prices})
        model = await page.context.runs.find_model(str(model_id))
        await page.context.models.change(model.id or 0, body.values())
    except (ValidationError, ClientError) as error:
        return await _show(page, error=said(error))
    return page.go("/models")


@router.post("/models/{model_id}/remove", policy=Policy(OWNER))
async def remove_model(page: Page, model_id: int) -> Response:
    model = await page.context.runs.find_model(str(model_id))
    await page.context.models.remove(model.id or 0)
    return page.go("/models")


async def _show(
    page: Frame,
    *,
    form: dict[str, str] | None = None,
    error: str | None = None,
    synced: SyncResult | None = None,
    updated: PriceUpdate | None = None,
) -> Response:
    def read(session: Session) -> tuple[list[LlmModel], dict[int, int]]:
        rows = list(model_queries.page(session, limit=1000))
        return rows, {row.id or 0: model_queries.run_count(session, row.id or 0) for row in rows}

    rows, counts = await page.context.db.read(read)
    now = page.context.clock.now()
    return page.show(
        "models/models.html",
        422 if error else 200,
        models=rows,
        counts=counts,
        notes={row.id: page.context.request_notes(row.provider, row.name) for row in rows},
        given=form or {},
        error=error,
        synced=synced,
        updated=updated,
        warnings={row.id: age_warning(row.prices_entered_at, now, free=row.is_free) for row in rows},
        lists=price_list_summary((await page.context.price_lists.table()).entries.values(), now),
        protocols=list(Protocol),
    )


def _typed(form: dict[str, str]) -> dict[str, Any]:
    """The form as the API expects it; an invalid value stays text, and the API rejects it."""
    body: dict[str, Any] = dict(form)
    for name in PRICES:
        if name in body:
            try:
                body[name] = float(form[name])
            except ValueError:
                continue
    return body
