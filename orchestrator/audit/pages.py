"""The audit log page. All filters are in the URL."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from starlette.responses import Response

from orchestrator.audit import queries as audit_queries
from orchestrator.audit.schemas import AuditOut, visible_workspace
from orchestrator.audit.sentences import action_words
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.http.context import caller_of
from orchestrator.http.policy import ADMIN, Policy

router = page_router()

PAGE_SIZE = 100
Word = Annotated[str, Query(max_length=100)]
OUTCOMES = {"": "any", "done": "done", "refused": "refused or failed"}


@router.get("/audit", policy=Policy(ADMIN))
async def audit_page(
    page: Page,
    actor: Word = "",
    action: Word = "",
    object_id: Word = "",
    outcome: Word = "",
    after: Annotated[str, Query(pattern=r"^\d{0,15}$")] = "",
) -> Response:
    filters = {"actor": actor, "action": action, "object_id": object_id, "outcome": outcome}
    query = {name: value for name, value in filters.items() if value}
    rows = await page.context.db.read(
        lambda session: audit_queries.page(
            session,
            limit=PAGE_SIZE + 1,
            before=int(after) if after else None,
            workspace_id=visible_workspace(caller_of(page.request)),
            actor=actor or None,
            action=action or None,
            object_id=object_id or None,
            refused={"done": False, "refused": True}.get(outcome),
        )
    )
    entries = [AuditOut.of(row) for row in rows[:PAGE_SIZE]]
    more = {**query, "after": entries[-1].id} if len(rows) > PAGE_SIZE else None
    return page.show(
        "audit/audit.html",
        entries=[(entry, action_words(entry.action, entry.object_id)) for entry in entries],
        given=filters,
        filtered=bool(query),
        paged=bool(after),
        outcomes=OUTCOMES,
        first_link=f"{page.root}/audit?{urlencode(query)}",
        next_link=f"{page.root}/audit?{urlencode(more)}" if more else None,
    )
