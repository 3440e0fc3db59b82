"""Tables of the service itself: idempotency keys and shared facts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    Text,
)
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.workspaces import Owned, owned_key


class IdempotencyKey(Owned, table=True):
    """The answer given to a POST with this key, kept for a day."""

    __tablename__ = "idempotency_keys"
    workspace_id: int = owned_key()
    key: str = Field(primary_key=True, max_length=200)
    scope: str = Field(primary_key=True, max_length=200)
    request_hash: str = Field(max_length=64)
    answer: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False, index=True))


class ServiceFact(SQLModel, table=True):
    """A fact shared by all orchestrators of one database, such as the instance name on their containers."""

    __tablename__ = "service_facts"
    name: str = Field(primary_key=True, max_length=100)
    value: str = Field(sa_column=Column(Text, nullable=False))
