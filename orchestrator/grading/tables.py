"""Tables of grading."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Column,
)
from sqlmodel import Field, SQLModel

from orchestrator.db.columns import CompressedJson


class StoredAnswersRow(SQLModel, table=True):
    """Stored answers to one problem, which a run of kind `grade` judges."""

    __tablename__ = "given_answers"
    run_id: str = Field(primary_key=True, foreign_key="container_runs.id", max_length=36)
    benchmark: str = Field(primary_key=True, max_length=100)
    problem_id: str = Field(primary_key=True, max_length=300)
    answers: list[dict[str, Any]] = Field(sa_column=Column(CompressedJson, nullable=False))
