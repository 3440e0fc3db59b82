"""Tables of provider batches: the calls that wait for one, the batches, and what each run has reserved for them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Column, ForeignKeyConstraint, Index, LargeBinary, Text
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class BatchCall(SQLModel, table=True):
    """A call of the ledger that waits for a provider's batch, with its request. The row goes when the answer is stored; it
    stays if the call is to be made in the ordinary way."""

    __tablename__ = "batch_calls"
    __table_args__ = (
        ForeignKeyConstraint(["run_id"], ["container_runs.id"]),
        Index("ix_batch_calls_part", "part_id", "position"),
        Index("ix_batch_calls_state", "run_id", "state"),
    )
    run_id: str = Field(primary_key=True, max_length=36)
    call_key: str = Field(primary_key=True, max_length=400)
    state: str = Field(max_length=20)
    lot: str = Field(sa_column=Column(Text, nullable=False))
    """What all calls of one part have in common; see `lots.Lot`."""
    body: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    size_bytes: int = 0
    worst_nano_usd: int = Field(sa_column=Column(BigInteger, nullable=False))
    part_id: str | None = Field(default=None, max_length=36)
    position: int | None = None
    tries: int = 0
    error: str = Field(default="", sa_column=Column(Text, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))


class BatchPart(SQLModel, table=True):
    """One batch at a provider, with calls of one run. The row is written before anything is submitted, and outlives its run:
    a batch of a deleted run must still be cancelled."""

    __tablename__ = "batch_parts"
    __table_args__ = (Index("ix_batch_parts_state", "state"), Index("ix_batch_parts_run", "run_id", "created_at"))
    id: str = Field(primary_key=True, max_length=36)
    run_id: str = Field(max_length=36)
    lot: str = Field(sa_column=Column(Text, nullable=False))
    state: str = Field(max_length=20)
    calls: int = 0
    answered: int = 0
    failed: int = 0
    file_id: str | None = Field(default=None, max_length=200)
    remote_id: str | None = Field(default=None, max_length=200)
    cancel_sent: bool = False
    troubles: int = 0
    error: str = Field(default="", sa_column=Column(Text, nullable=False))
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    submit_began_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    submitted_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    expires_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))
    next_look_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    ended_at: datetime | None = Field(default=None, sa_column=Column(UtcDateTime))


class BatchReserve(SQLModel, table=True):
    """What the calls of a run that wait for batches can cost at most, as a sum: thousands wait for a day, and every call
    that is opened reads it."""

    __tablename__ = "batch_reserves"
    __table_args__ = (ForeignKeyConstraint(["run_id"], ["container_runs.id"]),)
    run_id: str = Field(primary_key=True, max_length=36)
    nano_usd: int = Field(sa_column=Column(BigInteger, nullable=False))
