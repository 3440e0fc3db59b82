"""A database with an ended run, and a keeper of archives that leads."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session

from orchestrator.archives import queries as archive_queries
from orchestrator.archives.batch_archives import BatchArchives, BatchSnapshot
from orchestrator.archives.object_store import ObjectStore
from orchestrator.archives.retention import RetentionPolicy
from orchestrator.archives.routes import batch_snapshot
from orchestrator.archives.run_archives import RunArchives
from orchestrator.archives.tables import ArchiveRow
from orchestrator.batches import queries as batch_queries
from orchestrator.batches.tables import Batch
from orchestrator.db.session import Database
from orchestrator.models.tables import LlmModel
from orchestrator.runs import queries as run_queries
from orchestrator.runs.queueing.drafts import draft_again
from orchestrator.runs.queueing.queue import enqueue_again
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.tables import Artefact
from tests.manual_clock import START, ManualClock
from tests.rows import a_model, a_run, an_attempt, an_item

GIB = 1 << 30


class Yard:
    def __init__(self, db: Database, clock: ManualClock, folder: Path) -> None:
        self.db, self.clock, self.folder = db, clock, folder
        self.leadership = Leadership(db, clock, "o1", 15)
        self.room = True

    def keeper(self, store: ObjectStore | None = None, **policy: Any) -> RunArchives:
        return RunArchives(
            self.db,
            self.leadership,
            self.clock,
            RetentionPolicy(**{"max_bytes": GIB, "days": None, "max_total_bytes": None, **policy}),
            folder=self.folder / "archives",
            artefacts=self.folder / "artefacts",
            store=store,
            has_room=lambda: self.room,
            rng=random.Random(1),
        )

    def batch_keeper(self, store: ObjectStore, **policy: Any) -> BatchArchives:
        async def describe(batch_id: str) -> BatchSnapshot:
            batch = await self.db.read(lambda s: batch_queries.find(s, batch_id))
            assert batch is not None
            return await batch_snapshot(self.db, batch)

        return BatchArchives(
            self.db,
            self.leadership,
            self.clock,
            RetentionPolicy(**{"max_bytes": GIB, "days": None, "max_total_bytes": None, **policy}),
            store,
            describe=describe,
            contents=self.keeper().contents,
            rng=random.Random(1),
        )

    async def batch(self) -> str:
        row = Batch(id="b-1", external_id=1, request={}, created_at=self.clock.now())
        await self.db.write(lambda session: session.add(row))
        return "b-1"

    async def set_status(self, run_id: str, status: str) -> None:
        def work(session: Session) -> None:
            run = run_queries.get(session, run_id)
            assert run is not None
            run.status = status
            session.add(run)

        await self.db.write(work)

    async def retry(self, run_id: str) -> str:
        def work(session: Session) -> str:
            run = run_queries.get(session, run_id)
            assert run is not None
            run.items_done -= 1
            new_id = enqueue_again(session, run, draft_again(run), now=self.clock.now(), daily_budget_usd=None)
            assert new_id is not None
            return new_id

        return await self.db.write(work)

    async def ended_run(self, *, items: int = 2, text: str = "x", status: str = "completed", **changed: Any) -> str:
        """Its container is gone, its archive is wanted."""
        self.clock.advance(0.01)
        run = a_run(items=items, now=self.clock.now(), status=status, items_done=items, **changed)

        def insert(session: Session) -> str:
            if session.get(LlmModel, 1) is None:
                session.add(a_model(id=1))
                session.flush()
            session.add(run)
            session.flush()
            session.add(an_attempt(run.id, token=None, removed_at=START, exit_code=0, log_tail="all done\n"))
            for number in range(items):
                data = {
                    "benchmark": "sample",
                    "problem_id": f"p{number}",
                    "sample_index": 0,
                    "outcome": "passed" if number % 2 == 0 else "wrong_answer",
                    "answer": f"{text} {number}",
                    "code": None,
                    "calls": [{"finish_reason": "stop"}],
                }
                session.add(an_item(run.id, f"p{number}", position=number, outcome=data["outcome"], data=data))
            archive_queries.request_archive(session, run.id, self.clock.now())
            return run.id

        return await self.db.write(insert)

    async def row(self, run_id: str) -> ArchiveRow:
        row = await self.db.read(lambda s: archive_queries.get(s, run_id))
        assert row is not None
        return row

    async def artefact(self, run_id: str, name: str, content: bytes, **changed: Any) -> None:
        """A row as the runner API would make it, with any name."""
        values = {"attempt": 1, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        row = Artefact(run_id=run_id, name=name, created_at=START, **{**values, **changed})

        def insert(session: Session) -> None:
            session.add(row)

        await self.db.write(insert)


@pytest.fixture
async def yard(database: Database, clock: ManualClock, tmp_path: Path) -> Yard:
    it = Yard(database, clock, tmp_path)
    await it.leadership.hold()
    return it
