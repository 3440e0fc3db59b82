"""REST for the audit log: list, and delete old entries."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request
from pydantic import AwareDatetime

from orchestrator.audit import queries as audit_queries
from orchestrator.audit.schemas import AuditOut, AuditPrune, AuditPruned, visible_workspace
from orchestrator.errors import Invalid
from orchestrator.http.context import Context, caller_of
from orchestrator.http.policy import ADMIN, OWNER, Policy, Router
from orchestrator.http.schemas import Limit, Page

router = Router(prefix="/api/audit", tags=["audit"])

KEPT = timedelta(days=30)
"""Nobody can delete entries younger than this."""

Words = Annotated[str | None, Query(max_length=200)]
Time = Annotated[AwareDatetime | None, Query()]


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
    """Who changed what, newest first: in your workspace, or for owners everywhere. `actor` and `action` match anywhere in
    the text.
    """
    rows = await context.db.read(
        lambda session: audit_queries.page(
            session,
            limit=limit + 1,
            before=after,
            workspace_id=visible_workspace(caller_of(request)),
            actor=actor,
            action=action,
            object_id=object_id,
            since=since,
            until=until,
            refused=refused,
        )
    )
    items = [AuditOut.of(row) for row in rows[:limit]]
    return Page(items=items, next=str(items[-1].id) if len(rows) > limit else None)


@router.post("/prune", policy=Policy(OWNER))
async def prune_audit(body: AuditPrune, request: Request, context: Context) -> AuditPruned:
    """Delete old entries. The deletion, its author and its limit stay recorded."""
    now, actor = context.clock.now(), caller_of(request).name
    if body.before > now - KEPT:
        raise Invalid(f"before: entries are kept for {KEPT.days} days at least; choose an earlier time")
    deleted = await context.db.write(lambda session: audit_queries.prune(session, body.before, now, actor))
    return AuditPruned(deleted=deleted)
