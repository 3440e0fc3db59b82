"""REST for the audit log: look, and let go of what is old."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Self

from fastapi import Query, Request
from pydantic import AwareDatetime, Field
from sqlmodel import Session

from orchestrator.audit import queries as audit_queries
from orchestrator.audit.queries import ActorKind
from orchestrator.audit.tables import AuditEntry
from orchestrator.errors import Invalid
from orchestrator.http.context import Context, caller_of
from orchestrator.http.policy import ADMIN, OWNER, Policy, Router
from orchestrator.http.schemas import Answer, Body, Limit, Page
from orchestrator.scopes import Scope

router = Router(prefix="/api/audit", tags=["audit"])

KEPT = timedelta(days=30)
"""What is younger cannot be deleted by anybody."""

Words = Annotated[str | None, Query(max_length=200)]
Time = Annotated[AwareDatetime | None, Query()]


class AuditOut(Answer):
    id: int
    at: datetime
    actor_kind: ActorKind
    actor: str
    user_id: int | None
    token_id: int | None
    workspace_id: int | None
    action: str
    object_id: str
    status: int | None
    address: str
    request_id: str
    detail: str

    @classmethod
    def of(cls, row: AuditEntry) -> Self:
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


class AuditPrune(Body):
    before: Annotated[AwareDatetime, Field(description="Delete entries from before then; at least 30 days ago.")]


class AuditPruned(Answer):
    deleted: int


@router.get("", policy=Policy(ADMIN))
async def list_audit(
    request: Request,
    context: Context,
    limit: Limit = 100,
    after: Annotated[int | None, Query(ge=1, le=2**53, description="`next` of the page before.")] = None,
    actor: Words = None,
    action: Words = None,
    object_id: Words = None,
    since: Time = None,
    until: Time = None,
    refused: Annotated[bool | None, Query(description="Only what was refused or failed, or only what was not.")] = None,
) -> Page[AuditOut]:
    """Who changed what, newest first: in your workspace, or for owners everywhere. `actor` and `action` are found anywhere
    in the text."""
    caller = caller_of(request)
    only = None if caller.scope.allows(Scope.OWNER) else caller.workspace_id

    def read(session: Session) -> list[AuditOut]:
        rows = audit_queries.page(
            session,
            limit=limit + 1,
            before=after,
            workspace_id=only,
            actor=actor,
            action=action,
            object_id=object_id,
            since=since,
            until=until,
            refused=refused,
        )
        return [AuditOut.of(row) for row in rows]

    rows = await context.db.read(read)
    return Page(items=rows[:limit], next=str(rows[limit - 1].id) if len(rows) > limit else None)


@router.post("/prune", policy=Policy(OWNER))
async def prune_audit(body: AuditPrune, request: Request, context: Context) -> AuditPruned:
    """Delete old entries. That it was done, by whom and up to when, stays."""
    now, who = context.clock.now(), caller_of(request).name
    if body.before > now - KEPT:
        raise Invalid(f"before: entries are kept for {KEPT.days} days at least; choose an earlier time")
    deleted = await context.db.write(lambda session: audit_queries.prune(session, body.before, now, who))
    return AuditPruned(deleted=deleted)
