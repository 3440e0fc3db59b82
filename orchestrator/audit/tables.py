"""The audit log: who changed what, when, from where. Rows are append-only: triggers in the database reject updates, and
allow deletion of old rows only as far as `audit_retention` permits, which itself cannot be changed.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, Index, Text
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime
from orchestrator.runs.tables import EVENT_ID


class AuditEntry(SQLModel, table=True):
    """One change, or a refused attempt. Names are stored as they were, since entries outlive the objects they name."""

    __tablename__ = "audit_log"
    __table_args__ = (Index("ix_audit_workspace", "workspace_id", "id"), Index("ix_audit_at", "at"))
    id: int | None = Field(default=None, sa_column=Column(EVENT_ID, primary_key=True, autoincrement=True))
    at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    actor_kind: str = Field(max_length=20)
    actor: str = Field(default="", max_length=200)
    user_id: int | None = None
    token_id: int | None = None
    workspace_id: int | None = None
    action: str = Field(max_length=200)
    object_id: str = Field(default="", max_length=300)
    status: int | None = None
    address: str = Field(default="", max_length=60)
    request_id: str = Field(default="", max_length=40)
    detail: str = Field(default="", sa_column=Column(Text, nullable=False))


class AuditRetention(SQLModel, table=True):
    """A decision that entries before this time may be deleted."""

    __tablename__ = "audit_retention"
    id: int | None = Field(default=None, primary_key=True)
    before: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    decided_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    decided_by: str = Field(max_length=200)
