"""Request and response bodies for deleting runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from orchestrator.http.context import Services
from orchestrator.http.schemas import Answer, Body, Text
from orchestrator.retention.queries import DeletionFilter
from orchestrator.retention.service import Deletion
from orchestrator.runs.lifecycle import Status

RunKey = Annotated[Text, Field(min_length=1, max_length=36, pattern=r"^[0-9a-zA-Z-]+$")]
FILTERS = ("ids", "status", "model", "benchmark", "trigger", "batch_id", "ended_before", "older_than_days")


class RunsDelete(Body):
    """A filter for runs to delete: a run must match every given field. At least one field is required."""

    ids: Annotated[list[RunKey], Field(min_length=1, max_length=1000)] | None = None
    status: Status | None = None
    model: Annotated[Text, Field(min_length=1, max_length=200)] | Annotated[StrictInt, Field(ge=1)] | None = None
    benchmark: Annotated[Text, Field(min_length=1, max_length=100)] | None = None
    trigger: Annotated[Text, Field(min_length=1, max_length=40)] | None = None
    batch_id: Annotated[Text, Field(min_length=1, max_length=60)] | None = None
    ended_before: datetime | None = None
    older_than_days: Annotated[StrictInt, Field(ge=0, le=36500)] | None = None
    dry_run: StrictBool = False

    @model_validator(mode="after")
    def _something_is_named(self) -> Self:
        if all(getattr(self, name) is None for name in FILTERS):
            raise ValueError(f"name what to delete: at least one of {', '.join(FILTERS)}")
        if self.ended_before is not None and self.older_than_days is not None:
            raise ValueError("give ended_before or older_than_days, not both")
        if self.ended_before is not None and self.ended_before.tzinfo is None:
            raise ValueError("ended_before: give the time with its zone, such as 2026-01-31T00:00:00Z")
        return self


class ProtectedRun(Answer):
    run_id: str
    why: str


class DeletionOut(Answer):
    dry_run: bool
    runs: int = Field(description="Runs that were deleted, or would be.")
    items: int
    calls: int
    events: int
    artefacts: int
    archives: int
    bytes: int = Field(description="Stored bytes of results, answers, artefacts and archives.")
    cost_usd: float = Field(description="What these runs cost. Spending that was counted stays counted.")
    protected: int = Field(description="Runs that match and stay.")
    protected_runs: list[ProtectedRun] = Field(description="Some of them, and why they stay.")
    more: bool = Field(description="Further runs match; send the request again.")

    @classmethod
    def of(cls, deletion: Deletion, *, dry_run: bool) -> DeletionOut:
        return cls(
            dry_run=dry_run,
            **vars(deletion.amounts),
            protected=deletion.protected,
            protected_runs=[ProtectedRun(run_id=run_id, why=why) for run_id, why in deletion.reasons.items()],
            more=deletion.more,
        )


async def deletion_filter(context: Services, body: RunsDelete) -> DeletionFilter:
    """The filter with names and ages resolved."""
    before = body.ended_before
    if body.older_than_days is not None:
        before = context.clock.now() - timedelta(days=body.older_than_days)
    return DeletionFilter(
        ids=None if body.ids is None else tuple(body.ids),
        status=body.status and body.status.value,
        model_id=None if body.model is None else (await context.runs.find_model(body.model)).id,
        benchmark=body.benchmark,
        trigger=body.trigger,
        batch_id=None if body.batch_id is None else (await context.batches.find(body.batch_id)).id,
        ended_before=before,
    )
