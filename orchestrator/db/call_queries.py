"""Statements on model calls. What they add up to, the rules of the ledger, is in `orchestrator.gateway.database_ledger`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, text, update
from sqlmodel import Session, col, select

from orchestrator.db.call_tables import GatewayFlight, LostSend
from orchestrator.db.tables import ContainerRun, GatewayCall

RESERVED, SENT, SETTLED, FAILED = "reserved", "sent", "settled", "failed"


@dataclass(frozen=True)
class Money:
    """What one run has spent, may have lost, and holds in reserve, in US dollars."""

    settled_usd: float
    lost_usd: float
    reserved_usd: float
    lost_sends: int


def lock_run(session: Session, run_id: str) -> None:
    """Make those who open calls of one run take turns until the end of the transaction; SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:run, 0))"), {"run": run_id})


def get(session: Session, run_id: str, call_key: str) -> GatewayCall | None:
    return session.get(GatewayCall, (run_id, call_key))


def flight(session: Session, run_id: str, call_key: str) -> GatewayFlight | None:
    return session.get(GatewayFlight, (run_id, call_key))


def take_off(session: Session, run_id: str, call_key: str, owner: str, until: datetime) -> None:
    """Note that `owner` makes this call now."""
    session.merge(GatewayFlight(run_id=run_id, call_key=call_key, owner=owner, until=until))


def land(session: Session, run_id: str, call_key: str) -> None:
    found = flight(session, run_id, call_key)
    if found is not None:
        session.delete(found)
        session.flush()


def extend(session: Session, owner: str, until: datetime) -> None:
    """Say that `owner` lives."""
    session.connection().execute(update(GatewayFlight).where(col(GatewayFlight.owner) == owner).values(until=until))


def flights_of(session: Session, owner: str) -> Sequence[GatewayFlight]:
    return session.exec(select(GatewayFlight).where(GatewayFlight.owner == owner)).all()


def flights_overdue(session: Session, now: datetime) -> Sequence[GatewayFlight]:
    """Those whose owner has not said for too long that it lives."""
    return session.exec(select(GatewayFlight).where(col(GatewayFlight.until) < now).with_for_update(skip_locked=True)).all()


def lose(session: Session, call: GatewayCall, reason: str, now: datetime) -> None:
    """The last try of a call may have been billed."""
    session.add(
        LostSend(run_id=call.run_id, call_key=call.call_key, worst_usd=call.reserved_usd, reason=reason[:2000], at=now)
    )


def charge(session: Session, run_id: str, cost_usd: float) -> None:
    """Add to what the run is shown to have cost."""
    session.connection().execute(
        update(ContainerRun).where(col(ContainerRun.id) == run_id).values(cost_usd=ContainerRun.cost_usd + cost_usd)
    )


def money(session: Session, run_id: str) -> Money:
    spent = session.exec(
        select(func.sum(GatewayCall.cost_usd), func.sum(GatewayCall.reserved_usd)).where(GatewayCall.run_id == run_id)
    ).one()
    lost = session.exec(select(func.sum(LostSend.worst_usd), func.count()).where(LostSend.run_id == run_id)).one()
    return Money(float(spent[0] or 0), float(lost[0] or 0), float(spent[1] or 0), int(lost[1]))


def page(session: Session, run_id: str, *, limit: int, after: str | None = None) -> Sequence[Any]:
    """The calls of a run in the order of their keys, without the answers."""
    columns = [column for column in GatewayCall.__table__.columns if column.name != "answer"]  # type: ignore[attr-defined]
    query = select(*columns).where(GatewayCall.run_id == run_id).order_by(col(GatewayCall.call_key)).limit(limit)
    if after is not None:
        query = query.where(col(GatewayCall.call_key) > after)
    found: Sequence[Any] = session.exec(query).all()
    return found
