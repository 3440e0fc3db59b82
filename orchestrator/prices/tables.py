"""The table of price entries that were taken from elsewhere; those that ship with the package are in `published.json`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class PriceEntry(SQLModel, table=True):
    """What a list of prices says of one model of one provider. `facts` has the fields of `entries.Facts`."""

    __tablename__ = "price_entries"
    provider: str = Field(primary_key=True, max_length=100)
    model: str = Field(primary_key=True, max_length=200)
    facts: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    source: str = Field(max_length=300)
    as_of: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
