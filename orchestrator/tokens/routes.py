"""REST for named API tokens: who holds one, make one, revoke one. A secret is shown once and kept nowhere."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from orchestrator.http.audit_trail import note
from orchestrator.http.context import Context, Services, caller_of
from orchestrator.http.identity import Caller
from orchestrator.http.policy import ADMIN, Policy, Router
from orchestrator.http.schemas import Page
from orchestrator.tokens.schemas import TokenCreate, TokenCreated, TokenOut

router = Router(prefix="/api/tokens", tags=["tokens"])


@router.get("", policy=Policy(ADMIN))
async def list_tokens(context: Context) -> Page[TokenOut]:
    """The named tokens, oldest first. The installation's own, which is in no table, is not among them."""
    now = context.clock.now()
    return Page(items=[TokenOut.of(row, now, owner) for row, owner in await context.accounts.tokens.listed()])


@router.post("", policy=Policy(ADMIN), status_code=201)
async def create_token(body: TokenCreate, request: Request, context: Context) -> TokenCreated:
    """Make a token for this workspace. It is shown only now: of its secret the service keeps a hash."""
    return await make_token(body, caller_of(request), request, context)


async def make_token(body: TokenCreate, maker: Caller, request: Request, context: Services) -> TokenCreated:
    row, secret = await context.accounts.tokens.make(body.name, body.scope, body.expires_in_days, maker=maker.scope)
    note(request.scope, object_id=str(row.id), detail=f"{row.name} ({row.scope})")
    owner = "" if row.user_id is None else maker.name
    return TokenCreated.of(row, context.clock.now(), owner).model_copy(update={"token": secret})


@router.delete("/{token_id}", policy=Policy(ADMIN), status_code=204)
async def revoke_token(token_id: Annotated[int, Path(ge=0, le=2**31 - 1)], context: Context) -> None:
    """Revoke a token: its next request is refused, and the pages that were signed in with it are signed out."""
    await context.accounts.tokens.revoke(token_id)
