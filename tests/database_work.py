"""How much a database does for a piece of work: statements, and steps of SQLite's virtual machine, about one per row read
and column compared. Unlike a time, both are the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, event

from orchestrator.db.session import Database

GRAIN = 10


@dataclass
class Work:
    statements: int = 0
    steps: int = 0


@contextmanager
def counted(engine: Engine) -> Iterator[Work]:
    """Counts what this engine's connections do within the block."""
    work = Work()
    watched: list[Any] = []

    def stepped() -> None:
        work.steps += GRAIN

    def before(connection: Any, *_: Any) -> None:
        work.statements += 1
        raw = connection.connection.driver_connection
        if all(each is not raw for each in watched):
            watched.append(raw)
            raw.set_progress_handler(stepped, GRAIN)

    event.listen(engine, "before_cursor_execute", before)
    try:
        yield work
    finally:
        event.remove(engine, "before_cursor_execute", before)
        for raw in watched:
            raw.set_progress_handler(None, GRAIN)


@contextmanager
def counted_in(db: Database) -> Iterator[Work]:
    """Counts reads and writes of an open database together."""
    with counted(db._read_engine) as read, counted(db._write_engine) as written:
        whole = Work()
        yield whole
        whole.statements = read.statements + written.statements
        whole.steps = read.steps + written.steps
