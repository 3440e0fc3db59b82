"""Statements on what an installation knows of itself, and on what a copy takes over from its original."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import delete, text, update
from sqlmodel import Session, col, select

from orchestrator.db.insert_once import insert_once
from orchestrator.db.service_tables import ServiceFact
from orchestrator.fleet.tables import Agent
from orchestrator.runs.tables import Attempt, ContainerRun, Lease
from orchestrator.runs.warm_pool.tables import WarmRunner

OPEN = ("pending", "starting", "running")
INSTANCE, OWNER, HOME, COPY_OF = "instance", "installation", "home", "copy_of"


def facts(session: Session) -> dict[str, str]:
    names = (INSTANCE, OWNER, HOME, COPY_OF)
    rows = session.exec(select(ServiceFact).where(col(ServiceFact.name).in_(names))).all()
    return {row.name: row.value for row in rows}


def propose(session: Session, proposals: Mapping[str, str]) -> dict[str, str]:
    """Store what is not stored yet; everything as it then stands. The first of several orchestrators decides."""
    for name, value in proposals.items():
        insert_once(session, ServiceFact(name=name, value=value))
    return facts(session)


def store(session: Session, values: Mapping[str, str | None]) -> None:
    """Write facts; None removes one."""
    for name, value in values.items():
        row = session.exec(select(ServiceFact).where(ServiceFact.name == name).with_for_update()).first()
        if value is None:
            if row is not None:
                session.delete(row)
        elif row is None:
            session.add(ServiceFact(name=name, value=value))
        else:
            row.value = value


def lease(session: Session) -> Lease | None:
    return session.exec(select(Lease)).first()


def lock_lease(session: Session) -> None:
    """Orchestrators that start at once on one database take turns."""
    session.exec(select(Lease).with_for_update()).first()


def server_identity(session: Session) -> tuple[str | None, str]:
    """PostgreSQL: the server's identifier, if this user may read it, and the database's number and name."""
    number, name = (
        session.connection().execute(text("SELECT oid, datname FROM pg_database WHERE datname = current_database()")).one()
    )
    may = text("SELECT has_function_privilege('pg_catalog.pg_control_system()', 'execute')")
    if not session.connection().execute(may).scalar():
        return None, f"{number}:{name}"
    system = session.connection().execute(text("SELECT system_identifier FROM pg_catalog.pg_control_system()")).scalar()
    return str(system), f"{number}:{name}"


def hold_inherited(session: Session, now: datetime) -> int:
    """Of what the original was doing, nothing is ours: its open runs are held, its runners and machines are forgotten."""
    unremoved = select(Attempt.run_id).where(col(Attempt.removed_at).is_(None))
    theirs = col(ContainerRun.status).in_(OPEN) | col(ContainerRun.id).in_(unremoved)
    held = session.connection().execute(update(ContainerRun).where(theirs).values(inherited=True)).rowcount
    session.connection().execute(delete(WarmRunner))
    session.connection().execute(delete(Agent))
    session.connection().execute(update(Lease).values(until=now))
    return int(held)


def release_inherited(session: Session) -> int:
    """The copy is the original from now on: it goes on with what was held."""
    mine = update(ContainerRun).where(col(ContainerRun.inherited)).values(inherited=False)
    return int(session.connection().execute(mine).rowcount)
