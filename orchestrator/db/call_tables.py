"""Tables beside `gateway_calls`: who is making a call now, and tries of which nobody knows whether they were paid."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Column, ForeignKeyConstraint, Text
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.tables import EVENT_ID


class GatewayFlight(SQLModel, table=True):
    """A call that is being made, and by whom. The row is there only while the call is reserved or sent."""

    __tablename__ = "gateway_flights"
    __table_args__ = (ForeignKeyConstraint(["run_id"], ["container_runs.id"]),)
    run_id: str = Field(primary_key=True, max_length=36)
    call_key: str = Field(primary_key=True, max_length=400)
    owner: str = Field(index=True, max_length=100)
    until: datetime = Field(sa_column=Column(UtcDateTime, nullable=False, index=True))


class LostSend(SQLModel, table=True):
    """A try that brought no answer but may have been billed; its worst case counts as spent."""

    __tablename__ = "gateway_lost_sends"
    __table_args__ = (ForeignKeyConstraint(["run_id"], ["container_runs.id"]),)
    id: int | None = Field(default=None, sa_column=Column(EVENT_ID, primary_key=True, autoincrement=True))
    run_id: str = Field(index=True, max_length=36)
    call_key: str = Field(max_length=400)
    worst_usd: float = 0.0
    reason: str = Field(default="", sa_column=Column(Text, nullable=False))
    at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
