"""Statements for reports on model calls: cost, lost sends, lists of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func
from sqlalchemy import select as sa_select
from sqlmodel import Session, col, select

from orchestrator.db.workspaces import workspace_filter
from orchestrator.gateway.ledger.tables import DaySpending, GatewayCall, LostSend
from orchestrator.models.tables import LlmModel
from orchestrator.runs.tables import ContainerRun

_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]
_MODELS: Any = LlmModel.__table__  # type: ignore[attr-defined]
_LOST: Any = LostSend.__table__  # type: ignore[attr-defined]
_DAYS: Any = DaySpending.__table__  # type: ignore[attr-defined]


def spending(session: Session, *, since: str, by_day: bool) -> Sequence[Any]:
    """Sums per day and model (newest first), or per model alone (most expensive first)."""
    slug = _MODELS.c.slug.label("model")
    sums = [func.sum(column).label(column.name) for column in _DAYS.columns if column.name not in ("day", "model_id")]
    keys = [_DAYS.c.day, slug] if by_day else [slug]
    order = [_DAYS.c.day.desc(), slug] if by_day else [func.sum(_DAYS.c.settled_usd).desc(), slug]
    query = (
        sa_select(*keys, *sums)
        .join_from(_DAYS, _MODELS, _MODELS.c.id == _DAYS.c.model_id)
        .where(workspace_filter(session, _DAYS))
    )
    rows: Sequence[Any] = (
        session.connection().execute(query.where(_DAYS.c.day >= since).group_by(*keys).order_by(*order)).all()
    )
    return rows


def past_runs(session: Session, model_id: int, limit: int = 200) -> Sequence[Any]:
    """Completed runs of a model, newest first, with the columns a quote needs."""
    tokens = ("input_tokens", "output_tokens")
    columns = ("benchmarks", "items_done", "concurrency", *tokens, "judge_cost_usd", "started_at", "completed_at")
    query = sa_select(*(_RUNS.c[name] for name in columns)).where(
        workspace_filter(session, _RUNS),
        _RUNS.c.model_id == model_id,
        _RUNS.c.status == "completed",
        _RUNS.c.items_done > 0,
        _RUNS.c.retry_of.is_(None),
    )
    rows: Sequence[Any] = session.connection().execute(query.order_by(_RUNS.c.id.desc()).limit(limit)).all()
    return rows


def lost_by_key(session: Session, run_id: str) -> dict[str, int]:
    """How many tries of each call may have been billed without an answer; calls without any are left out."""
    query = sa_select(_LOST.c.call_key, func.count()).where(_LOST.c.run_id == run_id).group_by(_LOST.c.call_key)
    return {call_key: int(count) for call_key, count in session.connection().execute(query)}


def payers(session: Session, run_id: str) -> list[str]:
    """Whose keys paid for the answers that a run bought: `system`, `workspace lab`, `user Ada`."""
    query = (
        select(GatewayCall.payer, GatewayCall.payer_name)
        .where(GatewayCall.run_id == run_id, GatewayCall.source == "bought", GatewayCall.state == "settled")
        .distinct()
    )
    return sorted(f"{payer} {name}".strip() for payer, name in session.exec(query).all())


def cache_saving_usd(session: Session, run_id: str) -> float:
    """What the providers' prompt caches saved in this run, less what writing to them cost."""
    query = select(func.sum(GatewayCall.cache_saving_usd)).where(
        GatewayCall.run_id == run_id, GatewayCall.source == "bought", GatewayCall.state == "settled"
    )
    return float(session.exec(query).one() or 0.0)


def page(session: Session, run_id: str, *, limit: int, after: str | None = None) -> Sequence[Any]:
    """The calls of a run ordered by key, without the answers."""
    columns = [column for column in GatewayCall.__table__.columns if column.name != "answer"]  # type: ignore[attr-defined]
    query = select(*columns).where(GatewayCall.run_id == run_id).order_by(col(GatewayCall.call_key)).limit(limit)
    if after is not None:
        query = query.where(col(GatewayCall.call_key) > after)
    rows: Sequence[Any] = session.exec(query).all()
    return rows
