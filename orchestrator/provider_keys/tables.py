"""Tables of what callers bring and may use: provider keys of workspaces and users, limits, and what users spent."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, Text, UniqueConstraint
from sqlmodel import Field

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.workspaces import Owned

OF_WORKSPACE = 0
"""In place of a user: what belongs to the workspace as a whole."""


class ProviderKey(Owned, table=True):
    """A key for a provider, sealed; `hint` is the end of it. There is one per holder and provider."""

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
