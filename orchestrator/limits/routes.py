"""REST for limits of a workspace and its users, with what is used of them now."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from fastapi import Path, Request
from pydantic import Field, StrictInt
from sqlmodel import Session

from orchestrator.accounts import queries as account_queries
from orchestrator.errors import Forbidden, NotFound
from orchestrator.gateway.ledger import spending_queries
from orchestrator.http.context import Context, caller_of
from orchestrator.http.policy import ADMIN, READ, Policy, Router
from orchestrator.http.schemas import Answer, Body, Number
from orchestrator.limits.service import Limit
from orchestrator.limits.tables import LimitRow
from orchestrator.provider_keys import queries as key_queries
from orchestrator.provider_keys.queries import EVERYONE, WORKSPACE
from orchestrator.scopes import Scope

router = Router(prefix="/api/limits", tags=["limits"])

Whose = Annotated[
    str, Path(pattern=r"^(workspace|everyone|[1-9]\d{0,9})$", description="`workspace`, `everyone`, or a user's id.")
]


class LimitSet(Body):
    """What is not given is not limited."""

    runs_at_once: Annotated[StrictInt, Field(ge=1, le=100_000, description="More wait in the queue.")] | None = None
    spend_per_day_usd: Annotated[Number, Field(ge=0, le=1e9)] | None = None
    requests_per_second: Annotated[Number, Field(gt=0, le=1e6)] | None = None


class LimitOut(Answer):
    whose: str
    name: str
    runs_at_once: int | None
    spend_per_day_usd: float | None
    requests_per_second: float | None
    updated_by: str
    updated_at: datetime

    @classmethod
    def of(cls, row: LimitRow, name: str) -> Self:
        return cls(name=name, **{field: getattr(row, field) for field in cls.model_fields if field != "name"})


class Used(Answer):
    runs_now: int
    spent_today_usd: float
    limit: LimitSet


class LimitsOut(Answer):
    items: list[LimitOut]
    workspace: Used
    mine: Used | None = Field(description="Of the caller, if it is a user.")


@router.get("", policy=Policy(READ))
async def list_limits(request: Request, context: Context) -> LimitsOut:
    """The workspace's limits, and what is used of them."""
    caller, now = caller_of(request), context.clock.now()
    both = await context.accounts.limits.of(caller.workspace_id, caller.user_id)

    def used(session: Session, limit: Limit, user_id: int | None) -> Used:
        live = key_queries.live_by_holder(session)
        mine = (count for (_, holder), count in live.items() if user_id is None or holder == user_id)
        spent = spending_queries.spent(session.connection(), now, caller.workspace_id, user_id)
        return Used(runs_now=sum(mine), spent_today_usd=spent, limit=LimitSet(**vars(limit)))

    def read(session: Session) -> LimitsOut:
        people = {str(user.id): user.name or user.email for user, _ in account_queries.members(session, caller.workspace_id)}
        names = {WORKSPACE: "the whole workspace", EVERYONE: "each user", **people}
        return LimitsOut(
            items=[LimitOut.of(row, names.get(row.whose, f"user {row.whose}")) for row in key_queries.limits(session)],
            workspace=used(session, both.workspace, None),
            mine=None if caller.user_id is None else used(session, both.own, caller.user_id),
        )

    return await context.db.read(read)


@router.put("/{whose}", policy=Policy(ADMIN))
async def set_limit(whose: Whose, body: LimitSet, request: Request, context: Context) -> LimitOut:
    """Set all three limits at once, of the workspace (owners only), of each of its users, or of one of them."""
    caller, now = caller_of(request), context.clock.now()
    if whose == WORKSPACE and not caller.scope.allows(Scope.OWNER):
        raise Forbidden("What a whole workspace may use is for owners of the installation to say.")

    def store(session: Session) -> LimitOut:
        name = "the whole workspace" if whose == WORKSPACE else "each user"
        if whose.isdecimal():
            person = account_queries.user(session, int(whose)) if int(whose) < 2**31 else None
            if person is None or account_queries.role_in(session, int(whose), caller.workspace_id) is None:
                raise NotFound(f"there is no user {whose} in this workspace")
            name = person.name or person.email
        row = key_queries.limit(session, whose) or LimitRow(whose=whose, updated_by="", updated_at=now)
        row.runs_at_once, row.spend_per_day_usd = body.runs_at_once, body.spend_per_day_usd
        row.requests_per_second, row.updated_by, row.updated_at = body.requests_per_second, caller.name, now
        session.add(row)
        session.flush()
        return LimitOut.of(row, name)

    stored = await context.db.write(store)
    context.accounts.limits.forget(caller.workspace_id)
    context.signals.wake()
    return stored


@router.delete("/{whose}", policy=Policy(ADMIN), status_code=204)
async def remove_limit(whose: Whose, request: Request, context: Context) -> None:
    """Take a limit away."""
    caller = caller_of(request)
    if whose == WORKSPACE and not caller.scope.allows(Scope.OWNER):
        raise Forbidden("What a whole workspace may use is for owners of the installation to say.")

    def delete(session: Session) -> None:
        row = key_queries.limit(session, whose)
        if row is None:
            raise NotFound(f"there is no limit for {whose}; GET /api/limits lists those there are")
        session.delete(row)

    await context.db.write(delete)
    context.accounts.limits.forget(caller.workspace_id)
    context.signals.wake()
