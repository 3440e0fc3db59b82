"""A database from before there were accounts is upgraded with everything in it, which then belongs to `default`."""

from __future__ import annotations

from typing import Any

from alembic import command
from sqlalchemy import MetaData, create_engine, func, select, text
from sqlalchemy.pool import NullPool
from sqlmodel import Session

from orchestrator.db import idempotency as idempotency_queries
from orchestrator.db.migrate import alembic_config, check, migrate
from orchestrator.db.workspaces import Owned
from orchestrator.evals import queries as eval_queries
from orchestrator.schedules import queries as schedule_queries
from orchestrator.tokens import queries as token_queries
from orchestrator.traces import queries as trace_queries
from tests.manual_clock import START

AT = {"created_at": START, "updated_at": START}
RUN = "0" * 36
ROWS: list[tuple[str, dict[str, Any]]] = [
    (
        "models",
        {"id": 1, "slug": "m", "provider": "p", "name": "m", "display_name": "", "protocol": "x", "params": {}, **AT},
    ),
    ("batches", {"id": "b", "external_id": 7, "name": "n", "request": {}, "created_at": START}),
    ("eval_sets", {"id": "s", "name": "helpful", "description": "", **AT}),
    ("traces", {"number": 1, "id": "t", "project": "", "digest": "d", "data": b"", "created_at": START}),
    ("trace_feedback", {"eval_set_id": "s", "trace_number": 1, "rating": "positive", "note": "", **AT}),
    ("api_tokens", {"id": 3, "name": "old", "secret_hash": "h", "scope": "admin", "created_at": START}),
    ("idempotency_keys", {"key": "k", "scope": "POST", "request_hash": "h", "answer": {"run_id": RUN}, "created_at": START}),
    ("service_facts", {"name": "share_secret", "value": "s"}),
]


def test_nothing_is_lost(empty_database_url: str) -> None:
    command.upgrade(alembic_config(empty_database_url), "0013")
    engine = create_engine(empty_database_url, poolclass=NullPool)
    tables = MetaData()
    tables.reflect(engine)
    with engine.begin() as connection:
        for name, values in ROWS:
            connection.execute(tables.tables[name].insert().values(**values))
        run = {
            "id": RUN,
            "kind": "benchmark",
            "model_id": 1,
            "status": "completed",
            "benchmarks": [],
            "plan": b"",
            "score": None,
        }
        numbers = {
            column.name: 0
            for column in tables.tables["container_runs"].columns
            if not column.nullable and column.name not in run and column.type.python_type in (int, float)
        }
        words = {
            "trigger_type": "manual",
            "instance_type": "lite",
            "desired": "run",
            "reuse_answers": False,
            "created_at": START,
        }
        connection.execute(tables.tables["container_runs"].insert().values(**numbers, **run, **words))
        schedule = {
            "model_id": 1,
            "cron_expression": "0 9 * * 1",
            "timezone": "UTC",
            "sample_size": 1,
            "benchmarks": [],
            "samples_per_problem": 1,
            "concurrency": 1,
            "priority": 0,
            "seed": 0,
            "draw": "all",
            "panel_version": 1,
            "misfire": "newest",
            "misfire_grace_s": 1,
            "overlap": "forbid",
            "paused": False,
            "baseline": "rolling",
            "baseline_runs": 1,
            "alarm_rate": 0.05,
            **AT,
        }
        connection.execute(tables.tables["schedules"].insert().values(**schedule))
        spent = {"day": "2026-11-16", "model_id": 1, "calls": 2, "input_tokens": 1, "output_tokens": 1, "settled_usd": 1.5}
        connection.execute(tables.tables["gateway_spending"].insert().values(**spent, lost_usd=0, lost_sends=0))
    migrate(empty_database_url)
    check(empty_database_url)
    with Session(engine) as session:
        for owned in Owned.__subclasses__():
            ids = session.connection().execute(select(func.distinct(owned.workspace_id))).scalars().all()  # type: ignore[arg-type]
            assert set(ids) <= {1}, owned
        token = token_queries.by_id(session, 3)
        assert token is not None
        assert (token.scope, token.user_id, token.workspace_id) == ("admin", None, 1)
        assert schedule_queries.get(session, 1) is not None
        assert idempotency_queries.find(session, "POST", "k") is not None
        assert eval_queries.set_named(session, "helpful") is not None
        assert trace_queries.numbers(session, ["t"]) == {"t": 1}
        assert session.connection().execute(text("SELECT count(*) FROM eval_verdicts")).scalar_one() == 0
        assert session.connection().execute(text("SELECT settled_usd FROM gateway_spending")).scalar_one() == 1.5
        if engine.dialect.name == "sqlite":
            assert session.connection().execute(text("PRAGMA foreign_key_check")).all() == []
