"""Tables of runs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    Column,
)
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class Lease(SQLModel, table=True):
    """Who leads. The epoch grows with every change of hands and guards every write of the leader."""

    __tablename__ = "leases"
    name: str = Field(primary_key=True, max_length=40)
    holder: str = Field(max_length=100)
    epoch: int
    until: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
