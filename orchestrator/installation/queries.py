"""Statements on an installation's facts about itself, and on what a copy inherits from its original."""

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
    """Store the facts that are not stored yet and return all of them. The first of several orchestrators wins."""
    for name, value in proposals.items():
        insert_once(session, ServiceFact(name=name, value=value))
    return facts(session)


def store(session: Session, values: Mapping[str, str | None]) -> None:
    """Write facts; None deletes one."""
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
    """Serialise orchestrators that start on one database at the same time."""
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
    """Put the original's open runs on hold and forget its runners and agents: none of them belong to the copy."""
    unremoved = select(Attempt.run_id).where(col(Attempt.removed_at).is_(None))
    inherited = col(ContainerRun.status).in_(OPEN) | col(ContainerRun.id).in_(unremoved)
    count = session.connection().execute(update(ContainerRun).where(inherited).values(inherited=True)).rowcount
    session.connection().execute(delete(WarmRunner))
    session.connection().execute(delete(Agent))
    session.connection().execute(update(Lease).values(until=now))
    return int(count)


def release_inherited(session: Session) -> int:
    """Resume what was put on hold, once the copy becomes the original."""
    statement = update(ContainerRun).where(col(ContainerRun.inherited)).values(inherited=False)
    return int(session.connection().execute(statement).rowcount)
