"""Statements on the secret that the addresses for sharing are made with."""

from __future__ import annotations

from sqlmodel import Session, select

from orchestrator.db.insert_once import insert_once
from orchestrator.db.service_tables import ServiceFact


def secret(session: Session, name: str) -> str | None:
    """None while nothing is shared."""
    return session.exec(select(ServiceFact.value).where(ServiceFact.name == name)).first()


def replace_secret(session: Session, name: str, value: str | None) -> None:
    """Every address made with the one before ends; with None, sharing ends."""
    row = session.exec(select(ServiceFact).where(ServiceFact.name == name).with_for_update()).first()
    if row is not None and value is None:
        session.delete(row)
    elif row is not None and value is not None:
        row.value = value
        session.add(row)
    elif value is not None:
        insert_once(session, ServiceFact(name=name, value=value))
