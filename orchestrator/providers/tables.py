"""Tables of stored providers, and of what their servers taught."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column, Text
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class StoredProvider(SQLModel, table=True):
    """A provider of the installation. `settings` has nothing secret; `sealed` has the key, the values of headers and the
    credentials of the proxy, bound to the name and to `origin`."""

    __tablename__ = "providers"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True, max_length=100)
    settings: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    origin: str = Field(max_length=300)
    sealed: str | None = Field(default=None, sa_column=Column(Text))
    revision: str = Field(max_length=40)
    """Another after every change: how the processes of the installation notice it."""
    created_by: str = Field(max_length=200)
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    updated_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class LearnedForm(SQLModel, table=True):
    """What the server of a provider taught about requests for one model. `form` is null if nothing differs."""

    __tablename__ = "learned_forms"
    provider: str = Field(primary_key=True, max_length=100)
    server: str = Field(primary_key=True, max_length=32)
    model: str = Field(primary_key=True, max_length=200)
    form: list[str] | None = Field(default=None, sa_column=Column(JSON, nullable=True))
    ignored_limit: str = Field(default="", max_length=500)
    most_over: float = 0.0
    learned_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
