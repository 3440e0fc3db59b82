"""REST for named API tokens: list, create, revoke. A secret is shown once and never stored."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from orchestrator.http.access.identity import Caller
from orchestrator.http.audit_trail import note
from orchestrator.http.context import Context, Services, caller_of
from orchestrator.http.policy import ADMIN, Policy, Router
from orchestrator.http.schemas import Page
from orchestrator.tokens.schemas import TokenCreate, TokenCreated, TokenOut

router = Router(prefix="/api/tokens", tags=["tokens"])


@router.get("", policy=Policy(ADMIN))
async def list_tokens(context: Context) -> Page[TokenOut]:
    """The named tokens, oldest first. The installation's own token is in no table and not listed."""
    now = context.clock.now()
    return Page(items=[TokenOut.of(row, now, owner) for row, owner in await context.accounts.tokens.listed()])


@router.post("", policy=Policy(ADMIN), status_code=201)
async def create_token(body: TokenCreate, request: Request, context: Context) -> TokenCreated:
    """Create a token for this workspace. It is shown only now: the service stores just a hash."""
    return await make_token(body, caller_of(request), request, context)


async def make_token(body: TokenCreate, maker: Caller, request: Request, context: Services) -> TokenCreated:
    row, secret = await context.accounts.tokens.make(body.name, body.scope, body.expires_in_days, maker=maker.scope)
    note(request.scope, object_id=str(row.id), detail=f"{row.name} ({row.scope})")
    owner = "" if row.user_id is None else maker.name
    return TokenCreated.of(row, context.clock.now(), owner).model_copy(update={"token": secret})


@router.delete("/{token_id}", policy=Policy(ADMIN), status_code=204)
async def revoke_token(token_id: Annotated[int, Path(ge=0, le=2**31 - 1)], context: Context) -> None:
    """Revoke a token: its next request is refused, and pages signed in with it are signed out."""
    await context.accounts.tokens.revoke(token_id)
