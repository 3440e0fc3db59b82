"""Statements on provider keys and on limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, func
from sqlalchemy import select as sa_select
from sqlmodel import Session, col, select

from orchestrator.accounts.tables import User, Workspace
from orchestrator.db.prepared import Prepared
from orchestrator.limits.tables import LimitRow
from orchestrator.provider_keys.tables import OF_WORKSPACE, ProviderKey
from orchestrator.runs.queries import LIVE, OURS
from orchestrator.runs.tables import ContainerRun

WORKSPACE, EVERYONE = "workspace", "everyone"
_KEYS: Any = ProviderKey.__table__  # type: ignore[attr-defined]
_LIMITS: Any = LimitRow.__table__  # type: ignore[attr-defined]
_USABLE = Prepared(
    sa_select(_KEYS.c.user_id, _KEYS.c.id).where(
        _KEYS.c.workspace_id == bindparam("of_workspace"),
        _KEYS.c.provider == bindparam("of_provider"),
        (_KEYS.c.user_id == bindparam("of_user")) | (_KEYS.c.user_id == bindparam("of_all", OF_WORKSPACE)),
    )
)
_SPENDING_LIMITS = Prepared(
    sa_select(_LIMITS.c.whose, _LIMITS.c.spend_per_day_usd).where(_LIMITS.c.workspace_id == bindparam("of_workspace"))
)
"""Both are read twice a second for each run that calls a model."""


def visible(session: Session, user_id: int | None) -> Sequence[ProviderKey]:
    """The keys of the session's workspace and of this user in it."""
    query = select(ProviderKey).where(col(ProviderKey.user_id).in_({OF_WORKSPACE, user_id or OF_WORKSPACE}))
    return session.exec(query.order_by(col(ProviderKey.provider), col(ProviderKey.user_id))).all()


def get(session: Session, key_id: int) -> ProviderKey | None:
    return session.exec(select(ProviderKey).where(ProviderKey.id == key_id)).first()


def all_keys(session: Session) -> Sequence[ProviderKey]:
    return session.exec(select(ProviderKey).order_by(col(ProviderKey.id)).with_for_update()).all()


def of_holder(session: Session, user_id: int, provider: str) -> ProviderKey | None:
    """The key of one holder in the session's workspace."""
    query = select(ProviderKey).where(ProviderKey.user_id == user_id, ProviderKey.provider == provider)
    return session.exec(query.with_for_update()).first()


def usable(session: Session, workspace_id: int, user_id: int | None, provider: str) -> dict[int, int]:
    """The ids of the keys that runs of this workspace and user may use, by holder."""
    values = {"of_workspace": workspace_id, "of_provider": provider, "of_user": user_id or OF_WORKSPACE}
    return dict(_USABLE.all(session.connection(), values))


def names(session: Session, workspace_id: int, user_id: int | None) -> tuple[str, str, bool]:
    """Names of workspace and user, and whether the user is an owner. Runs without a user count as an owner's."""
    workspace = session.get(Workspace, workspace_id)
    person = None if user_id is None else session.get(User, user_id)
    user_name = "" if person is None else person.name or person.email or person.subject
    return (
        workspace.slug if workspace else str(workspace_id),
        user_name,
        user_id is None or (person is not None and person.owner),
    )


def limits(session: Session) -> Sequence[LimitRow]:
    """The limits of the session's workspace."""
    return session.exec(select(LimitRow).order_by(col(LimitRow.whose))).all()


def limits_of(session: Session, workspace_id: int) -> dict[str, LimitRow]:
    rows = session.exec(select(LimitRow).where(LimitRow.workspace_id == workspace_id)).all()
    return {row.whose: row for row in rows}


def spending_limits(session: Session, workspace_id: int) -> dict[str, float | None]:
    """What may be spent in a day, by whose limit it is."""
    return dict(_SPENDING_LIMITS.all(session.connection(), {"of_workspace": workspace_id}))


def limits_on_runs(session: Session) -> Sequence[LimitRow]:
    """All limits, or none if no row limits runs. A row without a limit on runs still overrides the row for everyone."""
    rows = session.exec(select(LimitRow)).all()
    return rows if any(row.runs_at_once is not None for row in rows) else []


def limit(session: Session, whose: str) -> LimitRow | None:
    return session.exec(select(LimitRow).where(LimitRow.whose == whose).with_for_update()).first()


def live_by_holder(session: Session) -> dict[tuple[int, int | None], int]:
    """Number of runs with a container, by workspace and user."""
    columns: Any = (ContainerRun.workspace_id, ContainerRun.user_id, func.count())
    query = select(*columns).where(col(ContainerRun.status).in_(LIVE), OURS)
    rows = session.exec(query.group_by(ContainerRun.workspace_id, ContainerRun.user_id)).all()
    return {(workspace_id, user_id): int(count) for workspace_id, user_id, count in rows}
