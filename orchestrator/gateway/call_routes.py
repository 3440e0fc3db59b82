"""REST routes for the model calls of a run, as recorded in the ledger, without the answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import Query
from pydantic import Field
from sqlmodel import Session

from orchestrator.gateway.calls import Source
from orchestrator.gateway.ledger import report_queries as call_reports
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.http.schemas import Answer, Limit, Page
from orchestrator.runs.routes import RunId

router = Router(prefix="/api/container-runs", tags=["runs"])

CallCursor = Annotated[str | None, Query(max_length=400, description="`next` of the page before.")]


class CallOut(Answer):
    call_key: str
    provider: str
    model: str
    judge: bool = Field(description="Whether it asked the model that judges answers, not the measured one.")
    state: str
    source: Source
    from_run: str | None
    from_key: str | None
    payer: str = Field(description="Whose key paid: `system`, `workspace`, `user`, or `none` for another run's answer.")
    payer_name: str
    tries: int
    replays: int
    lost_sends: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    reserved_usd: float
    cost_usd: float | None = Field(description="None: the model had no price, so that the cost is not known.")
    cache_saving_usd: float = Field(description="What the provider's prompt cache saved; negative if it was written.")
    queue_s: float
    provider_s: float
    finish_reason: str | None
    error: str | None
    created_at: datetime
    settled_at: datetime | None

    @classmethod
    def of(cls, row: Any, lost_sends: int) -> Self:
        values = {name: getattr(row, name) for name in cls.model_fields if name not in ("lost_sends", "judge")}
        if not row.priced:
            values["cost_usd"] = None
        return cls(**values, lost_sends=lost_sends, judge=row.judge_model_id is not None)


@router.get("/{run_id}/calls", policy=Policy(READ))
async def list_calls(run_id: RunId, context: Context, limit: Limit = 100, after: CallCursor = None) -> Page[CallOut]:
    """Model calls ordered by key: state, tokens, cost and timing. Lost sends are tries that may have been billed although
    they returned no answer. The source says whether this call bought its answer or reused one, and from which run and
    call."""
    await context.runs.get(run_id)

    def read(session: Session) -> list[CallOut]:
        rows = call_reports.page(session, run_id, limit=limit + 1, after=after)
        lost_sends = call_reports.lost_by_key(session, run_id)
        return [CallOut.of(row, lost_sends.get(row.call_key, 0)) for row in rows]

    rows = await context.db.read(read)
    return Page(items=rows[:limit], next=rows[limit - 1].call_key if len(rows) > limit else None)
