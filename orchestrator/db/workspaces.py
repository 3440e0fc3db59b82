"""Workspace isolation: a session in one workspace neither sees nor writes rows of another.

The gate sets the actor once per request (`acting_as`), and `Database` carries it to its threads. Every query through a
session is then filtered by workspace and every new row assigned to it, whoever wrote the query. The service's own work
(loops, runners, the gateway) has no actor and sees everything; before it creates rows, it enters their workspace. Statements
on a plain connection are not filtered: they rely on an owner read through a session, or name the workspace themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Integer, column, event, true
from sqlalchemy.orm import ORMExecuteState, with_loader_criteria
from sqlmodel import Field, Session, SQLModel

DEFAULT_WORKSPACE = 1
"""Every installation has it; data from before there were workspaces belongs to it."""
_KEY = "acting"


@dataclass(frozen=True)
class Actor:
    """The workspace in which something is done, and the user who does it, if there is one."""

    workspace_id: int
    user_id: int | None = None
    name: str | None = field(default=None, compare=False)
    """The name of the user or token, for people."""


_acting: ContextVar[Actor | None] = ContextVar("acting", default=None)


def current_actor() -> Actor | None:
    return _acting.get()


@contextmanager
def acting_as(actor: Actor | None) -> Iterator[None]:
    """Do all database work of the block in that workspace; with None, as the service itself, which sees every workspace."""
    token = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(token)


class Owned(SQLModel):
    """A row of one workspace. Workspaces are never deleted, so the column needs no foreign key."""

    workspace_id: int = Field(default=DEFAULT_WORKSPACE, sa_column_kwargs={"server_default": str(DEFAULT_WORKSPACE)})


def owned_key() -> Any:
    """The workspace column as part of a primary key."""
    default = str(DEFAULT_WORKSPACE)
    column: Column[int] = Column(Integer, primary_key=True, autoincrement=False, server_default=default)
    return Field(default=DEFAULT_WORKSPACE, sa_column=column)


class NarrowSession(Session):
    """A session restricted to the workspace it was opened for."""


def acting_in(session: Session) -> Actor | None:
    actor: Actor | None = session.info.get(_KEY)
    return actor


def set_workspace(session: Session, actor: Actor | None) -> None:
    """Restrict the session to that workspace from now on."""
    session.info[_KEY] = actor


def workspace_of(session: Session) -> int:
    """The workspace for new rows of this session."""
    actor = acting_in(session)
    return actor.workspace_id if actor else DEFAULT_WORKSPACE


def assign_workspace(session: Session, row: Any) -> None:
    """Assign a new row to the session's workspace; without one, the row keeps its own value."""
    actor = acting_in(session)
    if actor is None or not isinstance(row, Owned):
        return
    row.workspace_id = actor.workspace_id
    if getattr(row, "user_id", 0) is None:
        row.user_id = actor.user_id


def workspace_filter(session: Session, table: Any) -> ColumnElement[bool]:
    """For statements on a plain connection: the rows of the session's workspace; all rows if there is no actor."""
    actor = acting_in(session)
    return true() if actor is None else table.c.workspace_id == actor.workspace_id


class _AnyOwned:
    """Stands for all owned tables in the criterion below: SQLAlchemy asks a common base for its column before it visits
    the tables, and a SQLModel that is not a table has none."""

    workspace_id = column("workspace_id", Integer)

    @classmethod
    def __subclasses__(cls) -> list[type[Owned]]:
        return Owned.__subclasses__()


@lru_cache(maxsize=1000)
def _only(workspace_id: int) -> Any:
    return with_loader_criteria(_AnyOwned, lambda table: table.workspace_id == workspace_id, include_aliases=True)


@event.listens_for(NarrowSession, "do_orm_execute")
def _narrow(state: ORMExecuteState) -> None:
    actor = acting_in(state.session)  # type: ignore[arg-type]
    if actor is not None and not state.is_column_load and not state.is_relationship_load:
        state.statement = state.statement.options(_only(actor.workspace_id))


@event.listens_for(NarrowSession, "before_flush")
def _stamp_new(session: Session, *_: object) -> None:
    for row in session.new:
        assign_workspace(session, row)
