"""REST for the model catalogue. Models that have runs are archived, never deleted."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query, Response

from orchestrator.db.idempotency import Idempotency
from orchestrator.http.context import Context
from orchestrator.http.policy import OWNER, READ, Policy, Router
from orchestrator.http.schemas import IdempotencyKey, Page
from orchestrator.models import queries as model_queries
from orchestrator.models.schemas import ModelCreate, ModelOut, ModelPatch, ModelsSynced

router = Router(prefix="/api/models", tags=["models"])


ModelRef = Annotated[str, Path(min_length=1, max_length=200, description="A model's id or slug.")]
SCOPE = "POST /api/models"


@router.get("", policy=Policy(READ))
async def list_models(
    context: Context,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
    after: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    archived: bool = False,
) -> Page[ModelOut]:
    rows = await context.db.read(lambda s: model_queries.page(s, limit=limit + 1, after=after, with_archived=archived))
    items = [ModelOut.of(row, context.clock.now(), context.request_notes(row.provider, row.name)) for row in rows[:limit]]
    return Page(items=items, next=str(items[-1].id) if len(rows) > limit else None)


@router.post("", policy=Policy(OWNER), status_code=201)
async def create_model(
    body: ModelCreate, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> ModelOut:
    """Add a model. Its slug is its identity and cannot be changed."""
    digest = hashlib.sha256(body.model_dump_json().encode()).hexdigest()
    key = None if idempotency_key is None else Idempotency(SCOPE, idempotency_key, digest)
    stored = await context.models.add(body.values(), key)
    response.headers["location"] = f"/api/models/{stored.id}"
    return ModelOut.of(stored, context.clock.now())


@router.post("/sync", policy=Policy(OWNER))
async def sync_models(context: Context) -> ModelsSynced:
    """Get the model list of every configured provider: add new models, mark those that disappeared."""
    return ModelsSynced(**asdict(await context.sync_models()))


@router.get("/{model:path}", policy=Policy(READ))
async def get_model(model: ModelRef, context: Context) -> ModelOut:
    row = await context.runs.find_model(model)
    return ModelOut.of(row, context.clock.now(), context.request_notes(row.provider, row.name))


@router.patch("/{model:path}", policy=Policy(OWNER))
async def change_model(model: ModelRef, body: ModelPatch, context: Context) -> ModelOut:
    """Change some fields. A given price is dated now."""
    row = await context.runs.find_model(model)
    changed = await context.models.change(row.id or 0, body.values())
    return ModelOut.of(changed, context.clock.now())


@router.delete("/{model:path}", policy=Policy(OWNER), status_code=204)
async def delete_model(model: ModelRef, context: Context) -> None:
    """Remove a model. One that has runs is archived, so that its results stay."""
    row = await context.runs.find_model(model)
    await context.models.remove(row.id or 0)
