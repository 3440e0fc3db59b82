"""Tables of the ledger: calls, calls in flight, tries that may have been billed, and daily sums."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Text,
    true,
)
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime
from orchestrator.db.workspaces import Owned, owned_key
from orchestrator.runs.tables import EVENT_ID


class GatewayFlight(SQLModel, table=True):
    """A call in flight and the process that makes it. The row exists only while the call is reserved or sent. There are
    so few that an index would cost two writes per call for one read in ten seconds."""

    __tablename__ = "gateway_flights"
    __table_args__ = (ForeignKeyConstraint(["run_id"], ["container_runs.id"]),)
    run_id: str = Field(primary_key=True, max_length=36)
    call_key: str = Field(primary_key=True, max_length=400)
    owner: str = Field(max_length=100)
    until: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class LostSend(SQLModel, table=True):
    """A try that returned no answer but may have been billed; its worst case counts as spent."""

    __tablename__ = "gateway_lost_sends"
    __table_args__ = (ForeignKeyConstraint(["run_id"], ["container_runs.id"]),)
    id: int | None = Field(default=None, sa_column=Column(EVENT_ID, primary_key=True, autoincrement=True))
    run_id: str = Field(index=True, max_length=36)
    call_key: str = Field(max_length=400)
    worst_usd: float = 0.0
    reason: str = Field(default="", sa_column=Column(Text, nullable=False))
    at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class DaySpending(Owned, table=True):
    """What one model used and cost in a workspace on one day (UTC), as sums: every call reads them to check daily limits."""

    __tablename__ = "gateway_spending"
    day: str = Field(primary_key=True, max_length=10)
    workspace_id: int = owned_key()
    model_id: int = Field(primary_key=True, foreign_key="models.id")
    calls: int = 0
    input_tokens: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    output_tokens: int = Field(default=0, sa_column=Column(BigInteger, nullable=False))
    settled_usd: float = 0.0
    lost_usd: float = 0.0
    lost_sends: int = 0
    unpriced_calls: int = Field(default=0, sa_column_kwargs={"server_default": "0"})


class GatewayCall(SQLModel, table=True):
    """One model call: reserved, sent, settled or failed. The answer is stored before the runner sees it."""

    __tablename__ = "gateway_calls"
    __table_args__ = (
        ForeignKeyConstraint(["run_id"], ["container_runs.id"]),
        Index("ix_calls_state", "run_id", "state"),
        Index("ix_calls_question", "question_key"),
        Index("ix_calls_from", "run_id", "from_run", "from_key", unique=True),
    )
    run_id: str = Field(primary_key=True, max_length=36)
    call_key: str = Field(primary_key=True, max_length=400)
    request_hash: str = Field(max_length=64)
    provider: str = Field(max_length=100)
    model: str = Field(max_length=200)
    state: str = Field(max_length=20)
    reserved_usd: float = 0.0
    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    tries: int = 0
    replays: int = 0
    queue_s: float = 0.0
    provider_s: float = 0.0
    finish_reason: str | None = Field(default=None, max_length=40)
    error: str | None = Field(default=None, sa_column=Column(Text))
    answer: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    settled_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    question_key: str | None = Field(default=None, max_length=64)
    source: str = Field(default="bought", max_length=20, sa_column_kwargs={"server_default": "bought"})
    from_run: str | None = Field(default=None, max_length=36)
    from_key: str | None = Field(default=None, max_length=400)
    payer: str = Field(default="system", max_length=20, sa_column_kwargs={"server_default": "system"})
    payer_name: str = Field(default="", max_length=200, sa_column_kwargs={"server_default": ""})
    priced: bool = Field(default=True, sa_column_kwargs={"server_default": true()})
    """False if the model had no price, so that the call's cost is unknown."""
    cache_write_tokens: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    cache_saving_usd: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    """How much less the call cost because the provider cached a part of its prompt; negative if it cost more."""
    judge_model_id: int | None = None
    """The model that judges the run's answers, if this call asks it; None if it asks the measured model."""
