"""The table of agents: other machines that run containers for this installation."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, BigInteger, Column
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import UtcDateTime


class Agent(SQLModel, table=True):
    """One agent: a machine with its own engine. It asks for work; nothing here connects to it."""

    __tablename__ = "agents"
    id: str = Field(primary_key=True, max_length=30)
    name: str = Field(max_length=100)
    provider: str = Field(max_length=60)
    engine: str = Field(max_length=40)
    instance_types: list[str] = Field(sa_column=Column(JSON, nullable=False))
    max_at_once: int
    vcpu: float
    memory_bytes: int = Field(sa_column=Column(BigInteger, nullable=False))
    door_url: str = Field(max_length=300)
    """Where containers on that machine reach this orchestrator: through the agent."""
    leaving: bool = False
    created_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
    seen_at: datetime = Field(sa_column=Column(UtcDateTime, nullable=False))
