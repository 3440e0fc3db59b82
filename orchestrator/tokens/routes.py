"""REST for named API tokens: who holds one, make one, revoke one. A secret is shown once and kept nowhere."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

import structlog
from fastapi import Path, Request
from pydantic import Field, StrictInt
from sqlmodel import Session

from orchestrator.accounts import queries as account_queries
from orchestrator.db.session import KeyTaken
from orchestrator.errors import Conflict, Forbidden, NotFound
from orchestrator.http.audit_trail import note
from orchestrator.http.context import Context, Services, caller_of
from orchestrator.http.identity import Caller, new_secret
from orchestrator.http.policy import ADMIN, Policy, Router
from orchestrator.http.schemas import Answer, Body, Page, Text
from orchestrator.scopes import Scope
from orchestrator.system.identifiers import token_hash
from orchestrator.tokens import queries as token_queries
from orchestrator.tokens.tables import ApiToken

router = Router(prefix="/api/tokens", tags=["tokens"])
log = structlog.get_logger()


Given = Literal[Scope.READ, Scope.RUN, Scope.SCHEDULE, Scope.ADMIN, Scope.AGENT]
MEANINGS = (
    "`read`: look; `run`: also start and stop runs; `schedule`: also schedule them; `admin`: everything that you may do."
)


class TokenCreate(Body):
    name: Annotated[Text, Field(min_length=1, max_length=100, pattern=r"\S", description="Who or what will use it.")]
    scope: Annotated[Given, Field(description=MEANINGS)] = Scope.READ
    expires_in_days: Annotated[StrictInt, Field(ge=1, le=3650)] | None = None


class TokenOut(Answer):
    id: int
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    expired: bool
    last_used_at: datetime | None
    owner: str = Field(description="The user who made it and than whom it may do no more; empty: the installation's token.")

    @classmethod
    def of(cls, row: ApiToken, now: datetime, owner: str) -> Self:
        values = {name: getattr(row, name) for name in TokenOut.model_fields if name not in ("expired", "owner")}
        return cls(**values, expired=row.expires_at is not None and row.expires_at <= now, owner=owner)


class TokenCreated(TokenOut):
    """The only time that the token itself is told."""

    token: str = ""


@router.get("", policy=Policy(ADMIN))
async def list_tokens(context: Context) -> Page[TokenOut]:
    """The named tokens, oldest first. The installation's own, which is in no table, is not among them."""
    now = context.clock.now()

    def read(session: Session) -> list[TokenOut]:
        people = {user.id: user.name or user.email for user in account_queries.users(session)}
        return [TokenOut.of(row, now, people.get(row.user_id, "")) for row in token_queries.all_tokens(session)]

    return Page(items=await context.db.read(read))


@router.post("", policy=Policy(ADMIN), status_code=201)
async def create_token(body: TokenCreate, request: Request, context: Context) -> TokenCreated:
    """Make a token for this workspace. It is shown only now: of its secret the service keeps a hash."""
    return await make_token(body, caller_of(request), request, context)


async def make_token(body: TokenCreate, maker: Caller, request: Request, context: Services) -> TokenCreated:
    """Nobody makes a token that may do more than they may."""
    if not maker.scope.allows(body.scope):
        raise Forbidden(f"You have the scope {maker.scope} here; you cannot make a token of scope {body.scope}.")
    secret, now = new_secret(), context.clock.now()
    row = ApiToken(
        name=body.name.strip(),
        secret_hash=token_hash(secret),
        scope=body.scope.value,
        created_at=now,
        expires_at=now + timedelta(days=body.expires_in_days) if body.expires_in_days else None,
    )

    def insert(session: Session) -> ApiToken:
        session.add(row)
        session.flush()
        return row

    try:
        stored = await context.db.write(insert)
    except KeyTaken as error:
        raise Conflict(f"there is a token {row.name!r} already; revoke it first, or choose another name") from error
    note(request.scope, object_id=str(stored.id), detail=f"{stored.name} ({stored.scope})")
    log.info("token made", action="token_made", token=stored.id, name=stored.name, scope=stored.scope)
    owner = "" if stored.user_id is None else maker.name
    return TokenCreated.of(stored, now, owner).model_copy(update={"token": secret})


@router.delete("/{token_id}", policy=Policy(ADMIN), status_code=204)
async def revoke_token(token_id: Annotated[int, Path(ge=0, le=2**31 - 1)], context: Context) -> None:
    """Revoke a token: its next request is refused, and the pages that were signed in with it are signed out."""
    await remove_token(token_id, context)


async def remove_token(token_id: int, context: Services, user_id: int | None = None) -> None:
    """One of this workspace; with a user, only one of theirs."""

    def remove(session: Session) -> str:
        row = token_queries.by_id(session, token_id)
        if row is None or user_id not in (None, row.user_id):
            raise NotFound(f"there is no token {token_id}; GET /api/tokens lists those there are")
        session.delete(row)
        return row.name

    name = await context.db.write(remove)
    log.info("token revoked", action="token_revoked", token=token_id, name=name)
