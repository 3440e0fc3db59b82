"""Tables of limits."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.workspaces import Owned, owned_key


class LimitRow(Owned, table=True):
    """Upper limits for a whole workspace, each of its users, or one user. None means no limit."""

    __tablename__ = "limits"
    workspace_id: int = owned_key()
    whose: str = Field(primary_key=True, max_length=20)
    """`workspace`, `everyone`, or a user's id."""
    runs_at_once: int | None = None
    spend_per_day_usd: float | None = None
    requests_per_second: float | None = None
    updated_by: str = Field(max_length=200)
    updated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class UserSpending(SQLModel, table=True):
    """The cost of one user's runs in a workspace on one day (UTC)."""

    __tablename__ = "gateway_user_spending"
    day: str = Field(primary_key=True, max_length=10)
    workspace_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    user_id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    settled_usd: float = 0.0
    lost_usd: float = 0.0
