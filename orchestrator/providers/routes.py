"""REST for providers. They belong to the installation: everybody may see them, owners change them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response

from orchestrator.gateway.upstream.kinds.table import KINDS
from orchestrator.http.audit_trail import note
from orchestrator.http.context import Context, caller_of
from orchestrator.http.policy import OWNER, READ, Policy, Router
from orchestrator.http.schemas import Page
from orchestrator.providers.schemas import (
    Forgotten,
    KindOut,
    ProviderCreate,
    ProviderOut,
    ProviderPatch,
    ProviderTest,
    ProviderTested,
)
from orchestrator.providers.views import described, described_one

router = Router(prefix="/api/providers", tags=["providers"])

Name = Annotated[str, Path(min_length=1, max_length=100, description="A provider's name.")]


@router.get("", policy=Policy(READ))
async def list_providers(context: Context) -> Page[ProviderOut]:
    """All providers, from the environment and stored ones, without their secrets."""
    return Page(items=await described(context))


@router.get("/kinds", policy=Policy(READ))
async def list_kinds() -> Page[KindOut]:
    """The kinds of servers that are known: a kind sets address, paths and the form of requests."""
    kinds = [
        KindOut(
            name=kind.name, title=kind.title, source=kind.source, base_url=kind.base_url, protocols=sorted(kind.protocols)
        )
        for kind in KINDS.values()
    ]
    return Page(items=kinds)


@router.post("", policy=Policy(OWNER), status_code=201)
async def add_provider(body: ProviderCreate, request: Request, response: Response, context: Context) -> ProviderOut:
    """Add a provider. It can be used at once."""
    row = await context.providers.service.add(body.name, *body.parts(), by=caller_of(request).name)
    note(request.scope, object_id=row.name, detail=f"{row.name}, {row.origin}")
    response.headers["location"] = f"/api/providers/{row.name}"
    return await described_one(context, row.name)


@router.get("/{name}", policy=Policy(READ))
async def get_provider(name: Name, context: Context) -> ProviderOut:
    return await described_one(context, name)


@router.patch("/{name}", policy=Policy(OWNER))
async def change_provider(name: Name, body: ProviderPatch, request: Request, context: Context) -> ProviderOut:
    """Change some fields; calls that go out afterwards use them. One of environment variables cannot be changed."""
    row = await context.providers.service.change(name, *body.changes())
    note(request.scope, detail=f"{row.name}, {row.origin}")
    return await described_one(context, name)


@router.delete("/{name}", policy=Policy(OWNER), status_code=204)
async def remove_provider(name: Name, context: Context) -> None:
    """Remove a provider and its key. Its models stay, but cannot be asked until there is one of this name again."""
    await context.providers.service.remove(name)


@router.post("/{name}/test", policy=Policy(OWNER, spends=True, deadline=False))
async def try_provider(name: Name, context: Context, body: ProviderTest | None = None) -> ProviderTested:
    """Ask for its model list, and one model for a few tokens; says in words what the server understood."""
    return ProviderTested.of(await context.providers.probe.run(name, body.model if body else None))


@router.delete("/{name}/learned", policy=Policy(OWNER))
async def forget_learned(
    name: Name, context: Context, model: Annotated[str | None, Query(min_length=1, max_length=200)] = None
) -> Forgotten:
    """Forget what its server taught about requests, for all models or one: the next call is in the usual form."""
    await described_one(context, name)
    return Forgotten(forgotten=await context.providers.learned.forget(name, model))
