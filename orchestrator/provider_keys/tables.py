"""Tables of provider keys of workspaces and users."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, Text, UniqueConstraint
from sqlmodel import Field

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.workspaces import Owned

OF_WORKSPACE = 0
"""Used instead of a user id for keys of the whole workspace."""


class ProviderKey(Owned, table=True):
    """A sealed provider key; `hint` is its end. There is one per holder and provider."""

    __tablename__ = "provider_keys"
    __table_args__ = (UniqueConstraint("workspace_id", "user_id", "provider", name="uq_provider_keys_holder"),)
    id: int | None = Field(default=None, primary_key=True)
    user_id: int = OF_WORKSPACE
    provider: str = Field(max_length=100)
    name: str = Field(max_length=100)
    origin: str = Field(max_length=300)
    """Where it may be sent."""
    sealed: str = Field(sa_column=Column(Text, nullable=False))
    hint: str = Field(max_length=4)
    created_by: str = Field(max_length=200)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    updated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
