"""The only access to the database: `await db.read(fn)` and `await db.write(fn)`, where `fn` takes a session.

Database work is plain synchronous functions on threads, with one thread switch per transaction instead of one per statement.
`write` returns only after the commit, so whatever was answered is stored. SQLite has one writer thread; jobs that arrive
together share a transaction (group commit), each in its own savepoint. On PostgreSQL each job has its own transaction. A
session never leaves its function.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    StatementError,
)
from sqlalchemy.pool import QueuePool
from sqlmodel import Session

from orchestrator.db import columns as stored_json
from orchestrator.db.workspaces import Actor, NarrowSession, current_actor, set_workspace
from orchestrator.db.write_ahead_log import WriteAheadLog

T = TypeVar("T")

GROUP_LIMIT = 200
READERS = 4
PG_WRITERS = 8
BUSY_TIMEOUT_MS = 5000
BEGIN_WRITING = "BEGIN IMMEDIATE"
RETRYABLE_SQLSTATES = frozenset({"40001", "40P01"})
SAVEPOINTS = {
    "do_savepoint": "SAVEPOINT",
    "do_release_savepoint": "RELEASE SAVEPOINT",
    "do_rollback_to_savepoint": "ROLLBACK TO SAVEPOINT",
}
MISFITS = (DataError, UnicodeEncodeError, OverflowError)


class DatabaseUnavailable(Exception):
    """The database cannot be used now (locked, full, unreachable). Nothing was stored; try again shortly."""


class CommitUncertain(DatabaseUnavailable):
    """The connection broke during the commit: nobody knows whether it was stored."""


class NotStorable(Exception):
    """A value does not fit its column: a NUL or lone surrogate in a text, a number too large. Nothing was stored."""


Plain = Connection
"""The argument of work that needs no session."""

DuplicateKey = IntegrityError
"""Raised by a write if a unique key exists already, or a row is still referenced. Nothing of the job was stored."""


class Database:
    """The readers and the writer of one database. Made by `open_database`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.dialect = make_url(url).get_backend_name()
        self._committed: list[Callable[[], None]] = []
        self._closed = False
        self._connection: Connection | None = None
        if self.dialect == "sqlite":
            self._write_engine = _sqlite_engine(url, BEGIN_WRITING, 1)
            self._read_engine = _sqlite_engine(url, "BEGIN", READERS)
            self._log = WriteAheadLog(make_url(url).database or "")
            self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
            self._writer: threading.Thread | None = threading.Thread(target=self._write_loop, name="db-writer", daemon=True)
            self._writer.start()
            self._write_pool: ThreadPoolExecutor | None = None
        else:
            self._write_engine = self._read_engine = create_engine(
                url,
                pool_size=PG_WRITERS + READERS,
                max_overflow=2,
                pool_pre_ping=True,
                pool_timeout=5,
                json_serializer=stored_json.dumps,
                json_deserializer=stored_json.loads,
            )
            self._writer = None
            self._write_pool = ThreadPoolExecutor(PG_WRITERS, thread_name_prefix="db-write")
        self._read_pool = ThreadPoolExecutor(READERS, thread_name_prefix="db-read")

    def on_commit(self, call: Callable[[], None]) -> None:
        """Run `call` on a database thread after every commit; it must not block or raise."""
        self._committed.append(call)

    async def read(self, fn: Callable[[Session], T]) -> T:
        if self._closed:
            raise DatabaseUnavailable("the service is shutting down")
        return await asyncio.get_running_loop().run_in_executor(self._read_pool, self._read, fn, current_actor())

    async def write(self, fn: Callable[[Session], T]) -> T:
        """Run `fn` in a transaction and return its result after the commit. An error in `fn` rolls back only `fn`."""
        return await self._submit(_in_session(fn, current_actor()), plain=False)

    async def write_plain(self, fn: Callable[[Connection], T], *, synced: bool = True) -> T:
        """Like `write`, but without a session, which costs more than some statements.

        Without `synced`, it returns once the commit survives a crash of this process; it survives a crash of the machine
        only a moment later (SQLite only; PostgreSQL makes no difference).
        """
        return await self._submit(fn, plain=True, synced=synced)

    async def _submit(self, work: Callable[[Connection], T], *, plain: bool, synced: bool = True) -> T:
        if self._closed:
            raise DatabaseUnavailable("the service is shutting down")
        loop = asyncio.get_running_loop()
        if self._write_pool is not None:
            return await loop.run_in_executor(self._write_pool, self._write_alone, work)
        job = _Job(work, plain, synced, loop, loop.create_future())
        self._jobs.put(job)
        # Cancelling the caller does not cancel the job: the writer does not look at the future before the commit.
        result: T = await job.future
        return result

    async def checkpoint(self) -> None:
        """Move SQLite's write-ahead log into the database file."""
        if self.dialect == "sqlite":
            await asyncio.get_running_loop().run_in_executor(self._read_pool, self._checkpoint)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(None, self._writer.join, 10)
        if self._write_pool is not None:
            self._write_pool.shutdown(wait=True)
        self._read_pool.shutdown(wait=True)
        self._read_engine.dispose()
        self._write_engine.dispose()

    def _read(self, fn: Callable[[Session], T], actor: Actor | None) -> T:
        try:
            with NarrowSession(self._read_engine, expire_on_commit=False) as session:
                set_workspace(session, actor)
                return fn(session)
        except (OperationalError, InterfaceError) as error:
            raise DatabaseUnavailable(_first_line(error)) from error
        except MISFITS as error:
            raise NotStorable(_first_line(error)) from error
        except DatabaseError as error:
            if type(error) is not DatabaseError:  # a bug in our statement; a plain DatabaseError means a damaged file
                raise
            raise DatabaseUnavailable(_first_line(error)) from error

    def _checkpoint(self) -> None:
        connection = self._read_engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def _write_alone(self, work: Callable[[Connection], T]) -> T:
        for last in (False, False, True):
            committing = False
            try:
                with self._write_engine.begin() as connection:
                    result = work(connection)
                    committing = True
                self._after_commit()
                return result
            except (OperationalError, InterfaceError) as error:
                sqlstate = getattr(error.orig, "sqlstate", None)
                if not last and sqlstate in RETRYABLE_SQLSTATES:
                    continue
                if committing and sqlstate is None:  # no answer of the server to the COMMIT
                    raise CommitUncertain(_first_line(error)) from error
                raise DatabaseUnavailable(_first_line(error)) from error
            except (*MISFITS, StatementError) as error:
                translated = _error_for_caller(error)
                if translated is error:
                    raise
                raise translated from error
        raise AssertionError("unreachable")

    def _write_loop(self) -> None:
        while (job := self._next_job()) is not None:
            group = [job]
            stop = False
            while len(group) < GROUP_LIMIT and not self._jobs.empty():
                another = self._jobs.get()
                if another is None:
                    stop = True
                    break
                group.append(another)
            self._write_group(group)
            if stop:
                break
        self._log.sync()
        self._let_go()

    def _next_job(self) -> _Job | None:
        try:
            return self._jobs.get(timeout=self._log.patience_s)
        except queue.Empty:
            self._log.sync()
            return self._jobs.get()

    def _write_group(self, group: list[_Job]) -> None:
        results: list[_Result]
        try:
            connection = self._connection or self._write_engine.connect()
            self._connection = connection  # kept, because taking it from the pool costs more than some jobs
            raw: Any = connection.connection.driver_connection
            self._log.before(raw, synced=any(job.synced for job in group))
            plain = all(job.plain for job in group)
            results = _carry_out_plainly(connection, group) if plain else _carry_out(connection, group)
            self._log.after(raw, whole=all(error is None for _, _, error in results))
        except (DBAPIError, sqlite3.Error) as error:
            self._let_go()
            trouble = DatabaseUnavailable(_first_line(error))
            trouble.__cause__ = error
            results = [(job, None, trouble) for job in group]
        except BaseException as error:
            self._let_go()
            results = [(job, None, error) for job in group]
        else:
            self._after_commit()
        _answer(results)

    def _let_go(self) -> None:
        """After a failure, drop the connection so that the next group starts with a fresh one."""
        self._log.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(DBAPIError):
                connection.invalidate()
            connection.close()

    def _after_commit(self) -> None:
        for call in self._committed:
            call()


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Connection], Any]
    plain: bool
    synced: bool
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


_Result = tuple[_Job, Any, BaseException | None]


def _carry_out(connection: Connection, group: list[_Job]) -> list[_Result]:
    """Run the jobs in one transaction and return the result of each. Raises errors that roll all of them back."""
    results: list[_Result] = []
    alone = len(group) == 1
    with connection.begin() as transaction:
        for job in group:
            try:
                with nullcontext() if alone else connection.begin_nested():
                    value = job.work(connection)
                results.append((job, value, None))
                continue
            except (OperationalError, InterfaceError):
                raise
            except BaseException as error:
                results.append((job, None, _error_for_caller(error)))
            if alone and transaction.is_active:
                transaction.rollback()
    return results


def _carry_out_plainly(connection: Connection, group: list[_Job]) -> list[_Result]:
    """Like `_carry_out`, for jobs without sessions. Begins and ends the transaction in the driver, bypassing SQLAlchemy,
    which would be half the cost of a small job. A job that uses SQLAlchemy finds itself in a transaction."""
    raw: Any = connection.connection.driver_connection
    results: list[_Result] = []
    alone = len(group) == 1
    raw.execute(BEGIN_WRITING)
    for job in group:
        if not alone:
            raw.execute("SAVEPOINT job")
        try:
            value = job.work(connection)
        except (OperationalError, InterfaceError):
            raise
        except BaseException as error:
            results.append((job, None, _error_for_caller(error)))
            raw.execute("ROLLBACK" if alone else "ROLLBACK TO job")
        else:
            results.append((job, value, None))
        if not alone:
            raw.execute("RELEASE job")
    if raw.in_transaction:
        raw.execute("COMMIT")
    if connection.in_transaction():
        connection.commit()  # nothing to commit, but SQLAlchemy does not know that
    return results


def _error_for_caller(error: BaseException) -> BaseException:
    """The exception to raise in the job's caller."""
    not_json = isinstance(error, StatementError) and isinstance(error.orig, stored_json.NotJson)
    if not (not_json or isinstance(error, MISFITS)):
        return error
    misfit = NotStorable(_first_line(error))
    misfit.__cause__ = error
    return misfit


def _answer(results: list[_Result]) -> None:
    """Wake the callers, once per event loop."""
    of_loop: dict[asyncio.AbstractEventLoop, list[_Result]] = {}
    for result in results:
        of_loop.setdefault(result[0].loop, []).append(result)
    for loop, those in of_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, those)


def _settle(results: list[_Result]) -> None:
    for job, value, error in results:
        if job.future.done():
            continue  # the caller was cancelled
        if error is None:
            job.future.set_result(value)
        else:
            job.future.set_exception(error)
            job.future.exception()  # mark as retrieved: if nobody awaits it any more, asyncio would complain


def _in_session(fn: Callable[[Session], T], actor: Actor | None) -> Callable[[Connection], T]:
    """A failed flush rolls back the enclosing savepoint or transaction."""

    def work(connection: Connection) -> T:
        with NarrowSession(connection, expire_on_commit=False, join_transaction_mode="rollback_only") as session:
            set_workspace(session, actor)
            value = fn(session)
            session.commit()
            return value

    return work


def _first_line(error: BaseException) -> str:
    cause = error.orig if isinstance(error, StatementError) else error
    return str(cause).splitlines()[0] if str(cause) else type(cause).__name__


def _sqlite_engine(url: str, begin: str, size: int) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=1,
        connect_args={"check_same_thread": False},
        json_serializer=stored_json.dumps,
        json_deserializer=stored_json.loads,
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin only in SQLAlchemy's hook below
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        if not connection.connection.driver_connection.in_transaction:  # otherwise the writer has begun it itself
            connection.exec_driver_sql(begin)

    # SQLAlchemy would compile these anew each time, and every job needs one.
    for name, command in SAVEPOINTS.items():
        setattr(engine.dialect, name, _sending(command))
    return engine


def _sending(command: str) -> Callable[[Connection, str], None]:
    def send(connection: Connection, name: str) -> None:
        connection.exec_driver_sql(f"{command} {name}")

    return send


def database_url(url: str | None, data_dir: Path) -> str:
    """The SQLAlchemy URL for `DATABASE_URL`; by default, SQLite in the data directory."""
    if not url:
        return f"sqlite:///{(data_dir / 'benchyard.db').absolute()}"
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed.render_as_string(hide_password=False)
