"""The one door to the database: what `write` promises on both databases, and group commit on SQLite."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from orchestrator.db.session import Database, DatabaseUnavailable, NotStorable, database_url
from orchestrator.models import queries as model_queries
from tests.rows import a_model

pytestmark = pytest.mark.anyio


def adding(slug: str):  # type: ignore[no-untyped-def]
    def add(session: Session) -> str:
        session.add(a_model(slug))
        session.flush()
        return slug

    return add


async def slugs(db: Database) -> list[str]:
    return [row.slug for row in await db.read(lambda s: model_queries.page(s, limit=500))]


async def test_what_was_answered_is_stored(database: Database) -> None:
    assert await database.write(adding("a")) == "a"
    assert await slugs(database) == ["a"]


async def test_an_error_undoes_only_the_job_that_made_it(database: Database) -> None:
    # Given jobs that arrive together, of which one fails after it has written
    def failing(session: Session) -> None:
        adding("half-done")(session)
        raise RuntimeError("mine alone")

    # When they are carried out
    jobs = [adding("a"), failing, adding("b"), adding("a"), adding("c")]
    results = await asyncio.gather(*(database.write(job) for job in jobs), return_exceptions=True)
    # Then the others are stored, and each caller gets its own answer
    assert isinstance(results[1], RuntimeError)
    twice = sorted((results[0], results[3]), key=lambda result: isinstance(result, IntegrityError))
    assert twice[0] == "a"
    assert isinstance(twice[1], IntegrityError)
    assert set(await slugs(database)) == {"a", "b", "c"}


async def test_a_cancelled_caller_does_not_take_its_job_along(database: Database) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(session: Session) -> None:
        started.set()
        go_on.wait(60)
        adding("a")(session)

    task = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(started.wait, 5)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await database.close()
    again = Database(database.url)
    assert await slugs(again) == ["a"]
    await again.close()


async def test_after_close_nothing_is_taken(database: Database) -> None:
    await database.close()
    with pytest.raises(DatabaseUnavailable):
        await database.write(adding("a"))
    with pytest.raises(DatabaseUnavailable):
        await database.read(lambda s: model_queries.page(s, limit=1))


async def test_what_is_queued_is_written_before_close_returns(database: Database) -> None:
    writes = [asyncio.ensure_future(database.write(adding(f"m{number}"))) for number in range(20)]
    await asyncio.sleep(0)
    await database.close()
    assert len(await asyncio.gather(*writes)) == 20


async def test_listeners_are_called_after_the_commit(database: Database) -> None:
    calls: list[str] = []
    database.on_commit(lambda: calls.append("committed"))
    await database.write(adding("a"))
    assert calls == ["committed"]
    with pytest.raises(IntegrityError):
        await database.write(adding("a"))


@pytest.mark.parametrize(
    "slug", ["nul\x00inside", "lone\ud800surrogate", "x" * 300], ids=["nul", "surrogate", "too long for PostgreSQL"]
)
async def test_a_value_that_cannot_be_stored_is_the_callers_error(database: Database, slug: str) -> None:
    try:
        await database.write(adding(slug))
    except NotStorable:
        return
    assert database.dialect == "sqlite"  # which takes NUL, and any length


async def test_a_question_with_nul_is_the_askers_error(database: Database) -> None:
    try:
        assert await database.read(lambda s: model_queries.by_slug(s, "nul\x00inside")) is None
    except NotStorable:
        assert database.dialect == "postgresql"


class TestGroupCommit:
    """SQLite only: one writer, and jobs that arrive together share a transaction."""

    @pytest.fixture
    def dialect(self) -> str:
        return "sqlite"

    @staticmethod
    async def _together(database: Database, jobs: list) -> list:  # type: ignore[type-arg]
        """Have the writer find all of `jobs` in its queue at once."""
        started, gate = threading.Event(), threading.Event()

        def hold(_: Session) -> None:
            started.set()
            gate.wait(60)

        first = asyncio.ensure_future(database.write(hold))
        assert await asyncio.to_thread(started.wait, 60)
        rest = [asyncio.ensure_future(database.write(job)) for job in jobs]
        await asyncio.sleep(0.05)
        gate.set()
        await first
        return await asyncio.gather(*rest, return_exceptions=True)

    async def test_together_means_one_commit(self, database: Database) -> None:
        commits: list[int] = []
        event.listen(database._write_engine, "commit", lambda connection: commits.append(1))
        await self._together(database, [adding(f"m{number}") for number in range(50)])
        assert len(commits) == 2  # the gate's own, and one for all fifty
        assert len(await slugs(database)) == 50

    async def test_jobs_are_carried_out_in_the_order_they_came(self, database: Database) -> None:
        order: list[int] = []
        await self._together(database, [lambda s, n=n: order.append(n) for n in range(30)])
        assert order == list(range(30))

    async def test_a_commit_that_fails_answers_everybody(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_connection: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(database._write_engine.dialect, "do_commit", full)
            results = await self._together_failing(database, [adding(f"m{number}") for number in range(3)])
        assert [type(result) for result in results] == [DatabaseUnavailable] * 3
        assert "disk is full" in str(results[0])
        assert await slugs(database) == []
        assert await database.write(adding("a")) == "a"  # and it recovers by itself

    @staticmethod
    async def _together_failing(database: Database, jobs: list) -> list:  # type: ignore[type-arg]
        return await asyncio.gather(*(database.write(job) for job in jobs), return_exceptions=True)

    async def test_the_group_is_bounded(self, database: Database) -> None:
        results = await self._together(database, [adding(f"m{number}") for number in range(450)])
        assert len(results) == 450
        assert await database.read(lambda s: s.connection().execute(text("select count(*) from models")).scalar()) == 450

    async def test_durability_is_what_the_design_says(self, database: Database) -> None:
        def pragmas(session: Session) -> dict[str, object]:
            names = ("journal_mode", "synchronous", "foreign_keys")
            return {name: session.connection().execute(text(f"PRAGMA {name}")).scalar() for name in names}

        expected = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        assert await database.write(pragmas) == expected
        assert await database.read(pragmas) == expected


class TestLocked:
    """F12: somebody else holds the SQLite file."""

    @pytest.fixture
    def dialect(self) -> str:
        return "sqlite"

    @staticmethod
    async def _lock(database: Database) -> sqlite3.Connection:
        await database.write(lambda s: None)  # the first connection turns the file to WAL
        other = sqlite3.connect(database.url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        return other

    async def test_a_short_lock_is_waited_for(self, database: Database) -> None:
        other = await self._lock(database)
        write = asyncio.ensure_future(database.write(adding("a")))
        await asyncio.sleep(0.3)
        assert not write.done()
        assert await slugs(database) == []  # readers go on meanwhile
        other.execute("ROLLBACK")
        other.close()
        assert await write == "a"

    @pytest.mark.slow
    async def test_a_lock_of_ten_seconds_is_answered_and_got_over(self, database: Database) -> None:
        other = await self._lock(database)
        loop = asyncio.get_running_loop()
        loop.call_later(10, lambda: (other.execute("ROLLBACK"), other.close()))
        answers = []
        for number in range(4):
            try:
                answers.append(await database.write(adding(f"m{number}")))
            except DatabaseUnavailable as error:
                answers.append(error)
        refused = [number for number, answer in enumerate(answers) if isinstance(answer, DatabaseUnavailable)]
        assert "locked" in str(answers[0])
        # Nothing of what was refused is there, everything else is.
        assert set(await slugs(database)) == {f"m{number}" for number in range(4) if number not in refused}
        assert refused
        assert len(refused) < 4


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(None, "sqlite:////data/benchyard.db", id="sqlite in the data directory"),
        pytest.param("postgres://u:p@h/d", "postgresql+psycopg://u:p@h/d", id="postgres"),
        pytest.param("postgresql://u@h/d?sslmode=require", "postgresql+psycopg://u@h/d?sslmode=require", id="options stay"),
        pytest.param("sqlite:////x.db", "sqlite:////x.db", id="sqlite elsewhere"),
    ],
)
async def test_database_url(given: str | None, expected: str) -> None:
    assert database_url(given, Path("/data")) == expected
