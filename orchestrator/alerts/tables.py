"""Tables of alerts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, Text, false
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.workspaces import Owned
from orchestrator.runs.tables import EVENT_ID


class Alert(Owned, table=True):
    """An alert; receivers deduplicate by `uid`."""

    __tablename__ = "alerts"
    id: int | None = Field(default=None, sa_column=Column(EVENT_ID, primary_key=True, autoincrement=True))
    uid: str = Field(unique=True, max_length=60)
    model_id: int | None = Field(
        default=None, sa_column=Column(Integer, ForeignKey("models.id", ondelete="CASCADE"), index=True)
    )
    """None for a run without a model."""
    kind: str = Field(max_length=30)
    run_id: str | None = Field(default=None, max_length=36)
    title: str = Field(sa_column=Column(Text, nullable=False))
    data: dict[str, Any] = Field(default_factory=dict, sa_column=Column(JSON, nullable=False))
    at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    muted: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    """It was sent to nobody, because the model was muted."""
    acknowledged_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    acknowledged_by: str | None = Field(default=None, sa_column=Column(Text))


class Webhook(Owned, table=True):
    """An address that alerts are posted to."""

    __tablename__ = "webhooks"
    id: int | None = Field(default=None, primary_key=True)
    url: str = Field(sa_column=Column(Text, nullable=False))
    secret: str = Field(max_length=100)
    previous_secret: str | None = Field(default=None, max_length=100)
    """Also signs until `previous_until`, so that a receiver can switch without a gap."""
    previous_until: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    model_id: int | None = Field(
        default=None, sa_column=Column(Integer, ForeignKey("models.id", ondelete="CASCADE"), index=True)
    )
    every_failed_run: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    """Whether it also gets runs that fail outside schedules."""
    format: str = Field(default="standard", max_length=20, sa_column_kwargs={"server_default": "standard"})
    """A `MessageFormat`; for e-mail, `url` is a mailto: address."""
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class AlertMute(Owned, table=True):
    """Alerts of a model are stored but sent to nobody until then."""

    __tablename__ = "alert_mutes"
    id: int | None = Field(default=None, primary_key=True)
    model_id: int = Field(sa_column=Column(Integer, ForeignKey("models.id", ondelete="CASCADE"), nullable=False, index=True))
    until: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    muted_by: str = Field(sa_column=Column(Text, nullable=False))


class WebhookDelivery(SQLModel, table=True):
    """One alert on its way to one address: `pending`, `delivered`, or `dead` after the last try."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (Index("ix_deliveries_state", "state", "webhook_id", "alert_id"),)
    webhook_id: int = Field(
        sa_column=Column(Integer, ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    )
    alert_id: int = Field(
        sa_column=Column(EVENT_ID, ForeignKey("alerts.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    )
    state: str = Field(default="pending", max_length=20)
    tries: int = 0
    not_before: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    last_error: str | None = Field(default=None, sa_column=Column(Text))
    delivered_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
