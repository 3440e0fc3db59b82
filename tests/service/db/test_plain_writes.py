"""Work of statements alone, without sessions: it keeps all the promises of `write`, and shares transactions with it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from orchestrator.db.prepared import Prepared
from orchestrator.db.session import Database, DatabaseUnavailable, NotStorable
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from tests.rows import a_model

pytestmark = pytest.mark.anyio
Work = Callable[[Connection], Any]
_ADD = Prepared(LlmModel.__table__.insert())  # type: ignore[attr-defined]
COUNT = text("SELECT count(*) FROM models")


def adding(slug: str) -> Work:
    values = {name: value for name, value in a_model(slug).model_dump().items() if name != "id"}

    def add(connection: Connection) -> str:
        _ADD.run(connection, values)
        return slug

    return add


def counting(slug: str) -> Work:
    """Asks SQLAlchemy as well, which must find itself in the same transaction."""

    def work(connection: Connection) -> int:
        adding(slug)(connection)
        return int(connection.execute(COUNT).scalar_one())

    return work


def failing(slug: str, error: BaseException) -> Work:
    def work(connection: Connection) -> None:
        counting(slug)(connection)
        raise error

    return work


async def slugs(db: Database) -> set[str]:
    return {row.slug for row in await db.read(lambda s: model_queries.page(s, limit=500))}


async def together(database: Database, jobs: list[Work], *more: Callable[[Session], Any]) -> list[Any]:
    """All of them at once; SQLite's writer finds them in its queue together. `more` are jobs with a session."""
    started, gate = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        started.set()
        gate.wait(60)

    first = asyncio.ensure_future(database.write_plain(hold))
    assert await asyncio.to_thread(started.wait, 60)
    rest = [asyncio.ensure_future(database.write_plain(job)) for job in jobs]
    rest += [asyncio.ensure_future(database.write(job)) for job in more]
    await asyncio.sleep(0.05)
    gate.set()
    await first
    return await asyncio.gather(*rest, return_exceptions=True)


async def test_what_was_answered_is_stored(database: Database) -> None:
    assert await database.write_plain(adding("a")) == "a"
    assert await database.write_plain(counting("b")) == 2
    assert await slugs(database) == {"a", "b"}


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with others"])
async def test_an_error_undoes_only_the_job_that_made_it(database: Database, alone: bool) -> None:
    jobs = [failing("half-done", RuntimeError("mine alone"))]
    if not alone:
        jobs = [adding("a"), *jobs, counting("b"), adding("c")]
    results = await together(database, jobs)
    assert [str(result) for result in results if isinstance(result, Exception)] == ["mine alone"]
    assert await slugs(database) == (set() if alone else {"a", "b", "c"})
    assert await database.write_plain(adding("afterwards")) == "afterwards"


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with others"])
async def test_a_key_that_is_taken_is_the_callers_error(database: Database, alone: bool) -> None:
    await database.write_plain(adding("a"))
    results = await together(database, [adding("a"), *([] if alone else [adding("b")])])
    assert isinstance(results[0], IntegrityError)
    assert await slugs(database) == ({"a"} if alone else {"a", "b"})


async def test_jobs_with_and_without_a_session_arrive_together(database: Database) -> None:
    def with_session(session: Session) -> None:
        session.add(a_model("s"))
        session.flush()

    def broken(session: Session) -> None:
        with_session(session)
        raise RuntimeError("mine alone")

    results = await together(
        database, [adding("a"), failing("x", RuntimeError("mine alone")), counting("b")], with_session, broken
    )
    assert [isinstance(result, Exception) for result in results] == [False, True, False, False, True]
    assert await slugs(database) == {"a", "b", "s"}


async def test_a_value_that_cannot_be_stored_is_the_callers_error(database: Database) -> None:
    with pytest.raises(NotStorable):
        await database.write_plain(adding("lone\ud800surrogate"))
    assert await database.write_plain(adding("a")) == "a"


async def test_a_cancelled_caller_does_not_take_its_job_along_nor_hears_of_its_end(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        started.set()
        go_on.wait(60)
        adding("a")(connection)

    def slow_and_failing(connection: Connection) -> None:
        go_on.wait(60)
        failing("b", RuntimeError("unheard"))(connection)

    cancelled = [asyncio.create_task(database.write_plain(job)) for job in (slow, slow_and_failing)]
    await asyncio.to_thread(started.wait, 60)
    for task in cancelled:
        task.cancel()
    go_on.set()
    results = await asyncio.gather(*cancelled, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 2
    with caplog.at_level(logging.ERROR, logger="asyncio"):
        await database.write_plain(adding("c"))
        del cancelled, results
        gc.collect()
    assert not caplog.records
    async with asyncio.timeout(60):
        while await slugs(database) != {"a", "c"}:
            await asyncio.sleep(0.02)


async def test_a_caller_that_is_cancelled_as_its_job_fails_leaves_no_complaint(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    task = asyncio.create_task(database.write_plain(failing("a", RuntimeError("unheard"))))
    await asyncio.sleep(0)
    # The answer is in the loop's queue when the caller goes: it is both answered and cancelled.
    await database.write_plain(adding("b"))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with caplog.at_level(logging.ERROR, logger="asyncio"):
        del task
        gc.collect()
    assert not caplog.records


class TestOnSqlite:
    @pytest.fixture
    def dialect(self) -> str:
        return "sqlite"

    async def test_a_commit_that_fails_answers_everybody(self, database: Database) -> None:
        """The commit itself finds what is wrong, as it would a full disk."""

        def orphan(connection: Connection) -> None:
            connection.execute(text("PRAGMA defer_foreign_keys=ON"))
            connection.execute(
                text("INSERT INTO gateway_flights (run_id, call_key, owner, until) VALUES ('none', 'k', 'o', '2026-01-01')")
            )

        results = await together(database, [adding("a"), orphan, adding("b")])
        assert [type(result) for result in results] == [DatabaseUnavailable] * 3
        assert await slugs(database) == set()
        assert await database.write_plain(counting("c")) == 1  # and it recovers by itself

    async def test_listeners_are_called_after_each_commit(self, database: Database) -> None:
        commits: list[int] = []
        database.on_commit(lambda: commits.append(1))
        await together(database, [adding(f"m{number}") for number in range(50)])
        assert len(commits) == 2  # the gate's own, and one for all fifty
        assert len(await slugs(database)) == 50

    async def test_a_write_that_need_not_wait_for_the_disk(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """2 is synced with its commit, 1 is not; what is not is synced by the next one that is, or by itself soon."""
        synced = asyncio.Event()
        loop, sync = asyncio.get_running_loop(), os.fdatasync

        def noticed(file: int) -> None:
            sync(file)
            loop.call_soon_threadsafe(synced.set)

        monkeypatch.setattr("orchestrator.db.write_ahead_log.os.fdatasync", noticed)

        def mode(slug: str) -> Work:
            def work(connection: Connection) -> Any:
                adding(slug)(connection)
                return connection.exec_driver_sql("PRAGMA synchronous").scalar_one()

            return work

        assert await database.write_plain(mode("a")) == 2
        monkeypatch.setattr("orchestrator.db.write_ahead_log.SOON_S", 60)
        assert await database.write_plain(mode("b"), synced=False) == 1
        assert await database.write_plain(mode("c"), synced=False) == 1
        assert await database.write_plain(mode("d")) == 2
        monkeypatch.setattr("orchestrator.db.write_ahead_log.SOON_S", 0.02)
        assert not synced.is_set()
        assert await database.write_plain(mode("e"), synced=False) == 1
        async with asyncio.timeout(10):
            await synced.wait()
        assert await database.write(lambda s: s.connection().exec_driver_sql("PRAGMA synchronous").scalar_one()) == 2
        assert await slugs(database) == set("abcde")

    @pytest.mark.parametrize("stores", [True, False])
    async def test_only_a_commit_that_stores_something_takes_what_waits_to_the_disk(
        self, database: Database, monkeypatch: pytest.MonkeyPatch, stores: bool
    ) -> None:
        synced: list[int] = []
        monkeypatch.setattr("orchestrator.db.write_ahead_log.os.fdatasync", synced.append)
        monkeypatch.setattr("orchestrator.db.write_ahead_log.SOON_S", 0.5)
        await database.write_plain(adding("a"), synced=False)
        if stores:
            await database.write_plain(adding("b"))
        else:
            with pytest.raises(RuntimeError):
                await database.write_plain(failing("b", RuntimeError("undone")))
        await asyncio.sleep(1)
        assert len(synced) == (0 if stores else 1)

    async def test_what_has_waited_long_enough_is_synced_by_whoever_comes(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("orchestrator.db.write_ahead_log.SOON_S", -1)
        monkeypatch.setattr("orchestrator.db.write_ahead_log.WriteAheadLog.sync", lambda log: None)
        await database.write_plain(adding("a"), synced=False)
        mode = "PRAGMA synchronous"
        assert await database.write_plain(lambda c: c.exec_driver_sql(mode).scalar_one(), synced=False) == 2
