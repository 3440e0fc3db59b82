"""REST for lists of prices: what they say, another list in the place of the imported one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request

from orchestrator.errors import TooLarge
from orchestrator.http.context import Context
from orchestrator.http.policy import OWNER, READ, Body, Policy, Router
from orchestrator.http.schemas import Page
from orchestrator.models.schemas import ModelOut
from orchestrator.prices.litellm import MAX_BYTES
from orchestrator.prices.schemas import PriceOut, PricesUpdated, PriceUse

router = Router(prefix="/api/prices", tags=["models"])

LIST_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file `model_prices_and_context_window.json` as LiteLLM publishes it.",
        "content": {"application/json": {"schema": {"type": "object", "additionalProperties": {"type": "object"}}}},
    }
}
Provider = Annotated[str, Query(min_length=1, max_length=100)]


@router.get("", policy=Policy(READ))
async def list_prices(
    context: Context,
    provider: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
    after: Annotated[int, Query(ge=0, le=10**6)] = 0,
) -> Page[PriceOut]:
    """What the lists of prices say: the one that ships, and the imported one. Of each model, the newer entry."""
    table = await context.price_lists.table()
    entries = sorted((e for e in table.entries.values() if provider in (None, e.provider)), key=lambda entry: entry.key)
    shown = entries[after : after + limit]
    now = context.clock.now()
    more = len(entries) > after + limit
    return Page(items=[PriceOut.of(entry, now) for entry in shown], next=str(after + limit) if more else None)


@router.get("/find", policy=Policy(READ))
async def find_price(
    context: Context, provider: Provider, model: Annotated[str, Query(min_length=1, max_length=200)]
) -> PriceOut:
    """The entry for a model of a provider, by its name there; also for a dated version of it."""
    return PriceOut.of(await context.price_lists.find(provider, model), context.clock.now())


@router.put("", policy=Policy(OWNER, body=Body.UNLIMITED), openapi_extra=LIST_BODY)
async def update_prices(
    request: Request, context: Context, source: Annotated[str, Query(min_length=1, max_length=300)] = "an imported list"
) -> PricesUpdated:
    """Import a list of prices in LiteLLM's format, in the place of the one imported before. Models whose prices nobody
    entered get the new ones; costs of earlier calls stay. Entries that make no sense are named and left out."""
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > MAX_BYTES:
            raise TooLarge(f"a list of prices may have {MAX_BYTES:,} bytes")
    return PricesUpdated.of(await context.price_lists.update(bytes(raw), source))


@router.post("/use", policy=Policy(OWNER))
async def use_list_price(body: PriceUse, context: Context) -> ModelOut:
    """Take a model's prices from the lists again, in the place of those that somebody entered."""
    row = await context.runs.find_model(body.model)
    changed = await context.models.use_list_price(row.id or 0)
    return ModelOut.of(changed, context.clock.now())
