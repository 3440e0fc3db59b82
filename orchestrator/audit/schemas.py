"""Request and response bodies for the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import AwareDatetime, Field

from orchestrator.audit.queries import ActorKind
from orchestrator.audit.tables import AuditEntry
from orchestrator.http.access.identity import Caller
from orchestrator.http.schemas import Answer, Body
from orchestrator.scopes import Scope


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


def visible_workspace(caller: Caller) -> int | None:
    """The workspace whose entries the caller may see; None means all workspaces, for owners."""
    return None if caller.scope.allows(Scope.OWNER) else caller.workspace_id
