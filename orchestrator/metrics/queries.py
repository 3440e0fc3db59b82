"""Statements for metrics: ended runs, their items and calls, and start-up times of attempts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import case, func, or_
from sqlmodel import Session, col, select

from orchestrator.evals.tables import Eval, EvalSet
from orchestrator.gateway.ledger.tables import GatewayCall
from orchestrator.runs.queries import WITHOUT_TASK
from orchestrator.runs.tables import Attempt, ContainerRun, ItemRow

OPEN = ("pending", "starting", "running")
PART = 400
"""Ids per statement."""


def open_ids(session: Session) -> Sequence[str]:
    return session.exec(select(ContainerRun.id).where(col(ContainerRun.status).in_(OPEN))).all()


def since(session: Session, lowest_id: str, also: Collection[str]) -> list[ContainerRun]:
    """Runs created since then (ids sort by time), plus those in `also`."""
    run_ids = sorted(also)
    parts = [run_ids[start : start + PART] for start in range(0, len(run_ids), PART)] or [[]]
    runs: dict[str, ContainerRun] = {}
    for part in parts:
        query = select(ContainerRun).where(or_(col(ContainerRun.id) >= lowest_id, col(ContainerRun.id).in_(part)))
        runs |= {run.id: run for run in session.exec(query.options(WITHOUT_TASK)).all()}
    return list(runs.values())


def newest_scored(session: Session, limit: int) -> Sequence[ContainerRun]:
    """The newest completed runs with a score."""
    scored = col(ContainerRun.kind).in_(("benchmark", "harness"))
    query = select(ContainerRun).where(ContainerRun.status == "completed", scored)
    return session.exec(query.options(WITHOUT_TASK).order_by(col(ContainerRun.id).desc()).limit(limit)).all()


def outcomes(session: Session, run: ContainerRun) -> Sequence[tuple[str, str, int, int, int]]:
    """(benchmark, outcome, items, input tokens, output tokens) of the run's own items: items taken over from an earlier run
    are excluded.
    """
    tokens = (func.sum(ItemRow.input_tokens), func.sum(ItemRow.output_tokens))
    columns: Any = (ItemRow.benchmark, ItemRow.outcome, func.count(), *tokens)
    query = select(*columns).where(ItemRow.run_id == run.id, col(ItemRow.created_at) >= run.created_at)
    rows = session.exec(query.group_by(ItemRow.benchmark, ItemRow.outcome)).all()
    return [(benchmark, outcome, int(count), int(i or 0), int(o or 0)) for benchmark, outcome, count, i, o in rows]


def calls(session: Session, run: ContainerRun) -> Sequence[tuple[str, str, int]]:
    """(provider, state, calls) of the calls that this run paid for or attempted."""
    columns: Any = (GatewayCall.provider, GatewayCall.state, func.count())
    query = select(*columns).where(GatewayCall.run_id == run.id, GatewayCall.source == "bought")
    rows = session.exec(
        query.where(col(GatewayCall.created_at) >= run.created_at).group_by(GatewayCall.provider, GatewayCall.state)
    ).all()
    return [(provider, state, int(count)) for provider, state, count in rows]


def attempts(session: Session, run_id: str) -> Sequence[Attempt]:
    return session.exec(select(Attempt).where(Attempt.run_id == run_id).order_by(col(Attempt.number))).all()


def queue(session: Session, now: datetime) -> dict[str, int]:
    """Runs that have not ended: `waiting`, `put_off` until their next attempt, `starting`, `running`."""
    put_off = (col(ContainerRun.status) == "pending") & (col(ContainerRun.not_before) > now)
    waiting = col(ContainerRun.status) == "pending"
    state = case((put_off, "put_off"), (waiting, "waiting"), else_=col(ContainerRun.status))
    query: Any = select(state, func.count()).where(col(ContainerRun.status).in_(OPEN)).group_by(state)
    return {name: int(count) for name, count in session.exec(query).all()}


def evals(session: Session, limit: int) -> Sequence[tuple[str, Eval]]:
    """The newest evals, each with the name of its set; includes older versions."""
    query = select(EvalSet.name, Eval).join(EvalSet, col(EvalSet.id) == col(Eval.eval_set_id))
    return [(name, row) for name, row in session.exec(query.order_by(col(Eval.id).desc()).limit(limit)).all()]
