"""Model pages: the catalogue, prices with their dates, the providers' lists, and a form to add a model."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError
from orchestrator.http.policy import OWNER, READ, Policy
from orchestrator.models import queries as model_queries
from orchestrator.models.schemas import ModelCreate, ModelPatch
from orchestrator.models.service import PRICES
from orchestrator.models.sync import SyncResult
from orchestrator.models.tables import LlmModel
from runner.contract.run_spec import Protocol

router = page_router()


@router.get("/models", policy=Policy(READ))
async def models_page(page: Page) -> Response:
    return await _show(page)


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
    page: Frame, *, form: dict[str, str] | None = None, error: str | None = None, synced: SyncResult | None = None
) -> Response:
    def read(session: Session) -> tuple[list[LlmModel], dict[int, int]]:
        rows = list(model_queries.page(session, limit=1000))
        return rows, {row.id or 0: model_queries.run_count(session, row.id or 0) for row in rows}

    rows, counts = await page.context.db.read(read)
    return page.show(
        "models/models.html",
        422 if error else 200,
        models=rows,
        counts=counts,
        notes={row.id: page.context.request_notes(row.provider, row.name) for row in rows},
        given=form or {},
        error=error,
        synced=synced,
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
