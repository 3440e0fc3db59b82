"""The table of API tokens that people made."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class ApiToken(SQLModel, table=True):
    """A token by its name. The secret itself is not here: its hash is, and finds it."""

    __tablename__ = "api_tokens"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True, max_length=100)
    secret_hash: str = Field(unique=True, max_length=64)
    scope: str = Field(max_length=20)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    expires_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    last_used_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
