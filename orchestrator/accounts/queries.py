"""Statements on users, workspaces and memberships. None of them is restricted to a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, select

from orchestrator.accounts.tables import Membership, User, Workspace


@dataclass(frozen=True)
class WorkspaceAccess:
    """A workspace and a user's role in it."""

    id: int
    slug: str
    name: str
    role: str


def workspace(session: Session, workspace_id: int) -> Workspace | None:
    return session.get(Workspace, workspace_id)


def by_slug(session: Session, slug: str) -> Workspace | None:
    return session.exec(select(Workspace).where(Workspace.slug == slug)).first()


def workspaces(session: Session) -> Sequence[Workspace]:
    return session.exec(select(Workspace).order_by(col(Workspace.id))).all()


def user(session: Session, user_id: int) -> User | None:
    return session.get(User, user_id)


def by_identity(session: Session, issuer: str, subject: str) -> User | None:
    return session.exec(select(User).where(User.issuer == issuer, User.subject == subject)).first()


def membership(session: Session, user_id: int, workspace_id: int) -> Membership | None:
    return session.get(Membership, (user_id, workspace_id))


def workspaces_of(session: Session, user_id: int) -> list[WorkspaceAccess]:
    """The workspaces of a user, oldest first."""
    query = (
        select(Workspace, Membership.role)
        .join(Membership, col(Membership.workspace_id) == col(Workspace.id))
        .where(Membership.user_id == user_id)
        .order_by(col(Workspace.id))
    )
    return [WorkspaceAccess(row.id or 0, row.slug, row.name, role) for row, role in session.exec(query).all()]


def members(session: Session, workspace_id: int) -> Sequence[tuple[User, Membership]]:
    query = (
        select(User, Membership)
        .join(Membership, col(Membership.user_id) == col(User.id))
        .where(Membership.workspace_id == workspace_id)
        .order_by(col(User.id))
    )
    return [(person, member) for person, member in session.exec(query).all()]


def users(session: Session) -> Sequence[User]:
    return session.exec(select(User).order_by(col(User.id))).all()


def role_in(session: Session, user_id: int, workspace_id: int) -> str | None:
    """A user's role in a workspace. Owners are owners everywhere; None for disabled users and for people who are not
    members.
    """
    query = (
        select(User.owner, Membership.role)
        .join(
            Membership,
            (col(Membership.user_id) == col(User.id)) & (col(Membership.workspace_id) == workspace_id),
            isouter=True,
        )
        .where(User.id == user_id, col(User.disabled_at).is_(None))
    )
    row = session.exec(query).first()
    if row is None:
        return None
    owner, role = row
    return "owner" if owner else role
