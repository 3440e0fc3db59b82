"""Attempts on other machines, as the revision before stored them, keep their agent."""

from __future__ import annotations

from typing import Any

from alembic import command
from sqlalchemy import Engine, MetaData, create_engine, text
from sqlalchemy.pool import NullPool
from sqlmodel import Session

from orchestrator.db.migrate import alembic_config, check, migrate
from orchestrator.fleet import queries as agent_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.scheduling.remote import held_here
from orchestrator.runs.schemas import AttemptOut
from tests.manual_clock import START
from tests.rows import a_model, a_run, an_attempt

AGENT = "a" * 30


def insert(engine: Engine, table: str, row: Any, **changed: Any) -> None:
    """A row as the database of that time takes it."""
    tables = MetaData()
    tables.reflect(engine)
    values = {**row.model_dump(), **changed}
    with engine.begin() as connection:
        names = {column.name for column in tables.tables[table].columns}
        connection.execute(tables.tables[table].insert().values(**{k: v for k, v in values.items() if k in names}))


def test_the_agent_of_an_attempt_is_kept(empty_database_url: str) -> None:
    # Given a database of the revision before, with an attempt here and one at an agent
    command.upgrade(alembic_config(empty_database_url), "0026")
    engine = create_engine(empty_database_url, poolclass=NullPool)
    run = a_run(items=1, now=START, status="running")
    insert(engine, "models", a_model(id=1))
    insert(engine, "container_runs", run, plan=b"", attempt=2, fruitless=0)
    insert(engine, "attempts", an_attempt(run.id, number=1, engine="docker"))
    insert(engine, "attempts", an_attempt(run.id, number=2, engine=f"agent:{AGENT}", container_name="theirs"))
    # When it is upgraded
    migrate(empty_database_url)
    check(empty_database_url)
    # Then the agent finds its own, our engine holds the other, and the API says what it said
    with Session(engine) as session:
        ((_, theirs),) = agent_queries.living_attempts(session, AGENT)
        assert (theirs.number, theirs.agent_id, theirs.engine) == (2, AGENT, "agent")
        assert agent_queries.attempt_by_name(session, AGENT, "theirs") is not None
        assert [row.number for row in held_here(session)] == [1]
        shown = [AttemptOut.of(row, []).engine for row in run_queries.attempts(session, run.id)]
        assert shown == ["docker", f"agent:{AGENT}"]
    # And it can be taken back
    command.downgrade(alembic_config(empty_database_url), "0026")
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT engine FROM attempts ORDER BY number")).scalars().all()
    assert rows == ["docker", f"agent:{AGENT}"]
