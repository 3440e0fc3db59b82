"""Request and response bodies for limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, StrictInt

from orchestrator.http.schemas import Answer, Body, Number
from orchestrator.limits.service import Overview, Usage
from orchestrator.limits.tables import LimitRow


class LimitSet(Body):
    """A field that is not given is not limited."""

    runs_at_once: Annotated[StrictInt, Field(ge=1, le=100_000, description="More wait in the queue.")] | None = None
    spend_per_day_usd: Annotated[Number, Field(ge=0, le=1e9)] | None = None
    requests_per_second: Annotated[Number, Field(gt=0, le=1e6)] | None = None


class LimitOut(Answer):
    whose: str
    name: str
    runs_at_once: int | None
    spend_per_day_usd: float | None
    requests_per_second: float | None
    updated_by: str
    updated_at: datetime

    @classmethod
    def of(cls, row: LimitRow, name: str) -> Self:
        return cls(name=name, **{field: getattr(row, field) for field in cls.model_fields if field != "name"})


class Used(Answer):
    runs_now: int
    spent_today_usd: float
    limit: LimitSet

    @classmethod
    def of(cls, usage: Usage) -> Self:
        return cls(runs_now=usage.runs_now, spent_today_usd=usage.spent_today_usd, limit=LimitSet(**vars(usage.limit)))


class LimitsOut(Answer):
    items: list[LimitOut]
    workspace: Used
    mine: Used | None = Field(description="Of the caller, if it is a user.")

    @classmethod
    def of(cls, overview: Overview) -> Self:
        return cls(
            items=[LimitOut.of(row, name) for row, name in overview.rows],
            workspace=Used.of(overview.workspace),
            mine=Used.of(overview.own) if overview.own else None,
        )
