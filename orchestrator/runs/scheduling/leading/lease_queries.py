"""Queries on the leader lease: who may dispatch, reconcile and tick, and the epoch that guards the leader's writes."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session, select

from orchestrator.db.insert_once import insert_once
from orchestrator.db.service_tables import ServiceFact
from orchestrator.runs.tables import Lease

LEADER = "leader"


class LeadershipLost(Exception):
    """Another orchestrator leads now; this write was not executed."""


def acquire(session: Session, holder: str, now: datetime, until: datetime, *, renew: bool = True) -> int | None:
    """Take or renew the lease; returns the epoch, or None while another orchestrator holds it.

    Without `renew` (the first time after a start), a lease left by our own previous process is taken over under a new epoch.
    """
    if insert_once(session, Lease(name=LEADER, holder=holder, epoch=1, until=until)):
        return 1
    row = session.exec(select(Lease).where(Lease.name == LEADER).with_for_update()).one()
    if row.holder == holder and row.until > now and renew:
        row.until = until
        return row.epoch
    if row.holder != holder and row.until > now:
        return None
    row.holder, row.epoch, row.until = holder, row.epoch + 1, until
    return row.epoch


def release(session: Session, holder: str, now: datetime) -> None:
    row = session.exec(select(Lease).where(Lease.name == LEADER).with_for_update()).first()
    if row is not None and row.holder == holder:
        row.until = now


def guard(session: Session, epoch: int) -> None:
    """Fail the transaction unless `epoch` is still the leader's."""
    row = session.exec(select(Lease).where(Lease.name == LEADER).with_for_update(read=True)).first()
    if row is None or row.epoch != epoch:
        raise LeadershipLost(f"epoch {epoch} no longer leads")


def shared_fact(session: Session, name: str, proposal: str) -> str:
    """The stored value of `name`; stores `proposal` if there is none."""
    insert_once(session, ServiceFact(name=name, value=proposal))
    return session.exec(select(ServiceFact.value).where(ServiceFact.name == name)).one()
