"""The one door to the database: `await db.read(fn)` and `await db.write(fn)`, where `fn` takes a session.

Database work is plain synchronous functions on threads: one hop per transaction instead of one per statement. `write`
returns only after the commit, so an answer that was sent is an answer that is stored. On SQLite there is one writer
thread, and jobs that arrive together share a transaction (group commit), each in its own savepoint; on PostgreSQL each
job has its own transaction. A session never leaves its function.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.pool import QueuePool
from sqlmodel import Session

from orchestrator.db.owned import Acting, NarrowSession, acting, enter

T = TypeVar("T")

GROUP_LIMIT = 200
READERS = 4
PG_WRITERS = 8
BUSY_TIMEOUT_MS = 5000
RETRYABLE_SQLSTATES = frozenset({"40001", "40P01"})
SAVEPOINTS = {
    "do_savepoint": "SAVEPOINT",
    "do_release_savepoint": "RELEASE SAVEPOINT",
    "do_rollback_to_savepoint": "ROLLBACK TO SAVEPOINT",
}
MISFITS = (DataError, UnicodeEncodeError, OverflowError)


class DatabaseUnavailable(Exception):
    """The database cannot be used now (locked, full, unreachable). Nothing was stored; try again shortly."""


class NotStorable(Exception):
    """A value does not fit its column: NUL or half a character in a text, a number too large. Nothing was stored."""


Plain = Connection
"""What work of statements alone is handed."""

KeyTaken = IntegrityError
"""What a write raises when a unique key is taken, or when a row is still pointed at. Nothing of the job was stored."""


class Database:
    """Readers and the writer of one database. Made by `open_database`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.dialect = make_url(url).get_backend_name()
        self._committed: list[Callable[[], None]] = []
        self._closed = False
        self._connection: Connection | None = None
        if self.dialect == "sqlite":
            self._write_engine = _sqlite_engine(url, "BEGIN IMMEDIATE", 1)
            self._read_engine = _sqlite_engine(url, "BEGIN", READERS)
            self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
            self._writer: threading.Thread | None = threading.Thread(target=self._write_loop, name="db-writer", daemon=True)
            self._writer.start()
            self._write_pool: ThreadPoolExecutor | None = None
        else:
            self._write_engine = self._read_engine = create_engine(
                url, pool_size=PG_WRITERS + READERS, max_overflow=2, pool_pre_ping=True, pool_timeout=5
            )
            self._writer = None
            self._write_pool = ThreadPoolExecutor(PG_WRITERS, thread_name_prefix="db-write")
        self._read_pool = ThreadPoolExecutor(READERS, thread_name_prefix="db-read")

    def on_commit(self, call: Callable[[], None]) -> None:
        """Have `call` run (on a database thread) after every commit; it must not block or raise."""
        self._committed.append(call)

    async def read(self, fn: Callable[[Session], T]) -> T:
        if self._closed:
            raise DatabaseUnavailable("the service is shutting down")
        return await asyncio.get_running_loop().run_in_executor(self._read_pool, self._read, fn, acting())

    async def write(self, fn: Callable[[Session], T]) -> T:
        """Run `fn` in a transaction and return its result once that is committed. An error of `fn` undoes only `fn`."""
        return await self._submit(_in_session(fn, acting()))

    async def write_plain(self, fn: Callable[[Connection], T]) -> T:
        """As `write`, for work of statements alone: without a session, which costs more than some statements."""
        return await self._submit(fn)

    async def _submit(self, work: Callable[[Connection], T]) -> T:
        if self._closed:
            raise DatabaseUnavailable("the service is shutting down")
        loop = asyncio.get_running_loop()
        if self._write_pool is not None:
            return await loop.run_in_executor(self._write_pool, self._write_alone, work)
        job = _Job(work, loop, loop.create_future())
        job.future.add_done_callback(_noticed)
        self._jobs.put(job)
        # A caller that is cancelled must not take the job with it: the transaction may be half-way.
        result: T = await asyncio.shield(job.future)
        return result

    async def checkpoint(self) -> None:
        """Fold SQLite's write-ahead log into the database file."""
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

    def _read(self, fn: Callable[[Session], T], who: Acting | None) -> T:
        try:
            with NarrowSession(self._read_engine, expire_on_commit=False) as session:
                enter(session, who)
                return fn(session)
        except (OperationalError, InterfaceError) as error:
            raise DatabaseUnavailable(_first_line(error)) from error
        except MISFITS as error:
            raise NotStorable(_first_line(error)) from error

    def _checkpoint(self) -> None:
        connection = self._read_engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def _write_alone(self, work: Callable[[Connection], T]) -> T:
        for last in (False, False, True):
            try:
                with self._write_engine.begin() as connection:
                    result = work(connection)
                self._after_commit()
                return result
            except (OperationalError, InterfaceError) as error:
                if not last and getattr(error.orig, "sqlstate", None) in RETRYABLE_SQLSTATES:
                    continue
                raise DatabaseUnavailable(_first_line(error)) from error
            except MISFITS as error:
                raise NotStorable(_first_line(error)) from error
        raise AssertionError("unreachable")

    def _write_loop(self) -> None:
        while (job := self._jobs.get()) is not None:
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
        self._let_go()

    def _write_group(self, group: list[_Job]) -> None:
        results: list[tuple[_Job, Any, BaseException | None]] = []
        alone = len(group) == 1
        try:
            connection = self._connection or self._write_engine.connect()
            self._connection = connection  # kept: taking it from the pool costs more than some jobs
            with connection.begin() as transaction:
                for job in group:
                    try:
                        with nullcontext() if alone else connection.begin_nested():
                            value = job.work(connection)
                        results.append((job, value, None))
                        continue
                    except (OperationalError, InterfaceError):
                        raise
                    except MISFITS as error:
                        misfit = NotStorable(_first_line(error))
                        misfit.__cause__ = error
                        results.append((job, None, misfit))
                    except BaseException as error:
                        results.append((job, None, error))
                    if alone and transaction.is_active:
                        transaction.rollback()
        except DBAPIError as error:
            self._let_go()
            trouble = DatabaseUnavailable(_first_line(error))
            trouble.__cause__ = error
            results = [(job, None, trouble) for job in group]
        except BaseException as error:
            self._let_go()
            results = [(job, None, error) for job in group]
        else:
            self._after_commit()
        for job, value, failure in results:
            job.answer(value, failure)

    def _let_go(self) -> None:
        """After a mishap the next group begins with a fresh connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(DBAPIError):
                connection.invalidate()
            connection.close()

    def _after_commit(self) -> None:
        for call in self._committed:
            call()


class _Job:
    def __init__(
        self, work: Callable[[Connection], Any], loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any]
    ) -> None:
        self.work = work
        self.future = future
        self._loop = loop

    def answer(self, value: Any, error: BaseException | None) -> None:
        def settle() -> None:
            if self.future.done():
                return
            if error is None:
                self.future.set_result(value)
            else:
                self.future.set_exception(error)

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(settle)


def _in_session(fn: Callable[[Session], T], who: Acting | None) -> Callable[[Connection], T]:
    """A failed flush undoes what the connection is in: the job's savepoint, or its transaction."""

    def work(connection: Connection) -> T:
        with NarrowSession(connection, expire_on_commit=False, join_transaction_mode="rollback_only") as session:
            enter(session, who)
            value = fn(session)
            session.commit()
            return value

    return work


def _noticed(future: asyncio.Future[Any]) -> None:
    """Nobody may be waiting any more for a job that then fails; asyncio would complain."""
    if not future.cancelled():
        future.exception()


def _first_line(error: Exception) -> str:
    said = error.orig if isinstance(error, DBAPIError) else error
    return str(said).splitlines()[0] if str(said) else type(said).__name__


def _sqlite_engine(url: str, begin: str, size: int) -> Engine:
    engine = create_engine(
        url, poolclass=QueuePool, pool_size=size, max_overflow=1, connect_args={"check_same_thread": False}
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # SQLAlchemy's begin hook below is the only one that begins
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    # SQLAlchemy compiles these anew each time, and there is one for every job.
    for name, command in SAVEPOINTS.items():
        setattr(engine.dialect, name, _sending(command))
    return engine


def _sending(command: str) -> Callable[[Connection, str], None]:
    def send(connection: Connection, name: str) -> None:
        connection.exec_driver_sql(f"{command} {name}")

    return send


def database_url(url: str | None, data_dir: Path) -> str:
    """The SQLAlchemy URL for `DATABASE_URL`, or SQLite in the data directory."""
    if not url:
        return f"sqlite:///{(data_dir / 'benchyard.db').absolute()}"
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed.render_as_string(hide_password=False)
