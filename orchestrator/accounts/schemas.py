"""Request and response bodies for accounts, workspaces and members."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from orchestrator.accounts.queries import WorkspaceAccess
from orchestrator.accounts.tables import Membership, User
from orchestrator.http.access.identity import Caller
from orchestrator.http.schemas import Answer, Body, Text
from orchestrator.scopes import Role, Scope
from orchestrator.sign_in.tables import LoginSession

Name = Annotated[Text, Field(min_length=1, max_length=200, pattern=r"\S")]


class OwnWorkspace(Answer):
    slug: str
    name: str
    role: Role

    @classmethod
    def of(cls, workspace: WorkspaceAccess) -> Self:
        return cls(slug=workspace.slug, name=workspace.name, role=Role(workspace.role))


class AccountOut(Answer):
    """The caller, their role here, and the other workspaces they may use."""

    name: str
    user_id: int | None
    scope: Scope
    role: Role
    workspace: str
    workspaces: list[OwnWorkspace]

    @classmethod
    def of(cls, caller: Caller, workspaces: Iterable[WorkspaceAccess]) -> Self:
        return cls(
            name=caller.name,
            user_id=caller.user_id,
            scope=caller.scope,
            role=caller.role,
            workspace=caller.workspace,
            workspaces=[OwnWorkspace.of(workspace) for workspace in workspaces],
        )


class WorkspaceCreate(Body):
    slug: Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?$", description="It never changes.")]
    name: Name


class WorkspaceChange(Body):
    name: Name


class WorkspaceOut(Answer):
    slug: str
    name: str


class MemberPut(Body):
    role: Literal[Role.VIEWER, Role.MEMBER, Role.ADMIN]


class MemberAdd(MemberPut):
    email: Annotated[Text, Field(min_length=3, max_length=320, description="Of somebody who has signed in once.")]


class MemberOut(Answer):
    user_id: int
    name: str
    email: str
    role: Role
    since: datetime

    @classmethod
    def of(cls, user: User, row: Membership) -> Self:
        return cls(user_id=user.id or 0, name=user.name, email=user.email, role=Role(row.role), since=row.created_at)


class UserChange(Body):
    owner: bool | None = None
    disabled: bool | None = None


class UserOut(Answer):
    id: int
    issuer: str
    subject: str
    email: str
    name: str
    owner: bool
    disabled: bool
    created_at: datetime
    last_seen_at: datetime | None

    @classmethod
    def of(cls, user: User) -> Self:
        fields = {name: getattr(user, name) for name in cls.model_fields if name not in ("id", "disabled")}
        return cls(id=user.id or 0, disabled=user.disabled_at is not None, **fields)


class SessionOut(Answer):
    id: str
    agent: str
    address: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    this: bool

    @classmethod
    def of(cls, row: LoginSession, caller: Caller) -> Self:
        fields = {name: getattr(row, name) for name in cls.model_fields if name != "this"}
        return cls(**fields, this=row.id == caller.session_id)


class Ended(Answer):
    ended: int
