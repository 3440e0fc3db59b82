"""Ledgers to hold to the rules: in memory, in SQLite, in PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import create_engine
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.gateway.ledger.database import DatabaseLedger
from orchestrator.gateway.ledger.ledger import Ledger
from orchestrator.models.tables import LlmModel
from orchestrator.runs.queueing.drafts import BenchmarkTask
from orchestrator.runs.tables import ContainerRun
from tests.unit.gateway.memory_ledger import MemoryLedger

RUNS = ("run-1", "run-2")


class FakeClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 11, 16, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class LedgerWorld:
    """A ledger and a way to come back as another process on the same book."""

    ledger: Ledger
    restart: Callable[[], Awaitable[Ledger]]
    clock: FakeClock
    db: Database | None = None


@contextlib.asynccontextmanager
async def memory_world() -> AsyncIterator[LedgerWorld]:
    ledger = MemoryLedger()

    async def restart() -> Ledger:
        return MemoryLedger(ledger.rows)

    yield LedgerWorld(ledger, restart, FakeClock())


@contextlib.asynccontextmanager
async def database_world(url: str) -> AsyncIterator[LedgerWorld]:
    """On a database with all tables and no rows."""
    engine = create_engine(url)
    clock = FakeClock()
    with Session(engine) as session:
        session.add(
            LlmModel(
                id=1,
                slug="m",
                provider="p",
                name="m",
                protocol="anthropic",
                created_at=clock.now(),
                updated_at=clock.now(),
            )
        )
        session.commit()
        for run in RUNS:
            session.add(
                ContainerRun(
                    id=run,
                    model_id=1,
                    benchmarks=["sample"],
                    sample_size=1,
                    instance_type="basic",
                    deadline_s=60,
                    task=BenchmarkTask(benchmarks=[]),
                    created_at=clock.now(),
                )
            )
        session.commit()
    engine.dispose()
    db = Database(url)

    async def restart() -> Ledger:
        return DatabaseLedger(db, clock, "one")

    try:
        yield LedgerWorld(DatabaseLedger(db, clock, "one"), restart, clock, db)
    finally:
        await db.close()
