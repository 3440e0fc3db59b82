"""REST for the model catalogue. Models that have runs are archived, never deleted."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Path, Query, Response
from sqlmodel import Session

from orchestrator.db.session import KeyTaken
from orchestrator.errors import Conflict, NotFound
from orchestrator.http.context import Context
from orchestrator.http.policy import OWNER, READ, Policy, Router
from orchestrator.http.schemas import Answer, IdempotencyKey, Page
from orchestrator.models import queries as model_queries
from orchestrator.models.schemas import ModelCreate, ModelOut, ModelPatch
from orchestrator.models.tables import LlmModel
from orchestrator.runs.idempotency import Idempotency, answer_once
from runner.contract.run_spec import Protocol

router = Router(prefix="/api/models", tags=["models"])


class ModelsSynced(Answer):
    """Slugs, by what became of them; `failed` has the reason by provider."""

    providers: list[str]
    added: list[str]
    returned: list[str]
    missing: list[str]
    failed: dict[str, str]


ModelRef = Annotated[str, Path(min_length=1, max_length=200, description="A model's id or slug.")]
PRICES = ("input_price", "output_price", "cached_input_price", "cache_write_price")
SCOPE = "POST /api/models"


@router.get("", policy=Policy(READ))
async def list_models(
    context: Context,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
    after: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    archived: bool = False,
) -> Page[ModelOut]:
    rows = await context.db.read(lambda s: model_queries.page(s, limit=limit + 1, after=after, with_archived=archived))
    items = [ModelOut.of(row) for row in rows[:limit]]
    return Page(items=items, next=str(items[-1].id) if len(rows) > limit else None)


@router.post("", policy=Policy(OWNER), status_code=201)
async def create_model(
    body: ModelCreate, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> ModelOut:
    """Add a model. The slug is its identity here and cannot be changed later."""
    now = context.clock.now()
    digest = hashlib.sha256(body.model_dump_json().encode()).hexdigest()
    key = None if idempotency_key is None else Idempotency(SCOPE, idempotency_key, digest)
    protocol = body.protocol or (Protocol.ANTHROPIC if body.provider == "anthropic" else Protocol.OPENAI_CHAT)
    values = body.model_dump(exclude={"protocol", "params"})
    row = LlmModel(
        **values,
        protocol=protocol.value,
        params=body.params.model_dump(exclude_none=True),
        prices_entered_at=now if any(values[name] is not None for name in PRICES) else None,
        created_at=now,
        updated_at=now,
    )

    def add(session: Session) -> dict[str, int | None]:
        session.add(row)
        session.flush()
        return {"model_id": row.id}

    def insert(session: Session) -> LlmModel:
        stored = model_queries.get(session, answer_once(session, key, now, lambda: add(session))["model_id"])
        if stored is None:
            raise Conflict("the model that this Idempotency-Key made was deleted since; use a new key to add it again")
        return stored

    try:
        stored = await context.db.write(insert)
    except KeyTaken as error:
        raise Conflict(f"there is a model {body.slug!r} already; PATCH /api/models/{body.slug} changes it") from error
    response.headers["location"] = f"/api/models/{stored.id}"
    return ModelOut.of(stored)


@router.post("/sync", policy=Policy(OWNER))
async def sync_models(context: Context) -> ModelsSynced:
    """Ask every configured provider for its list of models: add new ones, mark those that disappeared."""
    return ModelsSynced(**asdict(await context.sync_models()))


@router.get("/{model:path}", policy=Policy(READ))
async def get_model(model: ModelRef, context: Context) -> ModelOut:
    return ModelOut.of(await context.runs.find_model(model))


@router.patch("/{model:path}", policy=Policy(OWNER))
async def change_model(model: ModelRef, body: ModelPatch, context: Context) -> ModelOut:
    """Change some fields. A price that is given is dated now."""
    found = await context.runs.find_model(model)
    now = context.clock.now()
    given: dict[str, Any] = body.model_dump(exclude_unset=True)
    if given.get("params") is not None:
        given["params"] = {key: value for key, value in given["params"].items() if value is not None}
    for name in ("name", "display_name", "protocol", "params"):
        if name in given and given[name] is None:
            del given[name]

    def update(session: Session) -> LlmModel:
        row = model_queries.lock(session, found.id or 0)
        if row is None:
            raise NotFound(f"the model {model!r} was deleted just now")
        for name, value in given.items():
            setattr(row, name, str(value) if name == "protocol" else value)
        if any(name in given for name in PRICES):
            row.prices_entered_at = now
        row.updated_at = now
        session.add(row)
        return row

    return ModelOut.of(await context.db.write(update))


@router.delete("/{model:path}", policy=Policy(OWNER), status_code=204)
async def delete_model(model: ModelRef, context: Context) -> None:
    """Remove a model; one that has runs is archived, so that its results stay."""
    found = await context.runs.find_model(model)
    now = context.clock.now()

    def remove(session: Session) -> None:
        row = model_queries.lock(session, found.id or 0)
        if row is None:
            return  # somebody else was quicker
        if model_queries.run_count(session, found.id or 0):
            row.archived_at = now
            row.slug = f"{row.slug}~{row.id}"  # the name becomes free for another model
            session.add(row)
        else:
            session.delete(row)

    await context.db.write(remove)
