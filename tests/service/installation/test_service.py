"""An installation knows itself again after a restart, a move and an upgrade, and knows a copy of itself for one."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.installation import queries
from orchestrator.installation.identity import Presence, own_name
from orchestrator.installation.service import CannotSettle, Installation, adopt, look, settle
from orchestrator.runs import queries as run_queries
from orchestrator.runs.scheduling.leading import lease_queries
from tests.manual_clock import ManualClock
from tests.postgres_from_wheel import PostgresFromWheel
from tests.rows import a_model, a_run, an_attempt

pytestmark = pytest.mark.anyio

HERE, ELSEWHERE = "machine-1", "machine-2"
OpenCopy = Callable[[], AsyncIterator[tuple[Database, Path]]]


async def start(db: Database, data: Path, machine: str = HERE, **changed: object) -> Installation:
    data.mkdir(exist_ok=True)
    return await settle(db, data, ManualClock(), machine=machine, **changed)  # type: ignore[arg-type]


@asynccontextmanager
async def copied(
    database: Database, data: Path, dialect: str, request: pytest.FixtureRequest, *, whole_directory: bool
) -> AsyncIterator[tuple[Database, Path]]:
    """A backup of the database, restored into a directory or a server of its own."""
    to = data.with_name("copy")
    if whole_directory:
        shutil.copytree(data, to)
    else:
        to.mkdir()
    if dialect == "sqlite":
        with (
            contextlib.closing(sqlite3.connect(database.url.removeprefix("sqlite:///"))) as source,
            contextlib.closing(sqlite3.connect(to / "benchyard.db")) as target,
        ):
            source.backup(target)
        url = f"sqlite:///{to / 'benchyard.db'}"
    else:
        server: PostgresFromWheel = request.getfixturevalue("postgres")
        await database.close()  # a template must not be in use
        url = server.url(server.create(str(make_url(database.url).database)))
    copy = Database(url)
    try:
        yield copy, to
    finally:
        await copy.close()


async def test_a_restart_and_a_move_within_the_disk_change_nothing(database: Database, tmp_path: Path) -> None:
    first = await start(database, tmp_path / "data", wanted_name="mine")
    assert (first.instance, first.is_quiet) == ("mine", False)
    assert await start(database, tmp_path / "data") == first
    (tmp_path / "data").rename(tmp_path / "moved")
    assert await start(database, tmp_path / "moved", wanted_name="another") == first


async def test_a_machine_that_is_not_known_decides_nothing(database: Database, tmp_path: Path) -> None:
    """The engine of an orchestrator in a container may be down when it starts."""
    first = await start(database, tmp_path / "data", machine="")
    for machine in (HERE, "", HERE):
        again = await start(database, tmp_path / "data", machine=machine)
        assert (again.instance, again.is_quiet) == (first.instance, False)


@pytest.mark.parametrize("dialect", ["sqlite"])
async def test_another_machine_is_another_place(database: Database, tmp_path: Path) -> None:
    first = await start(database, tmp_path / "data")
    second = await start(database, tmp_path / "data", machine=ELSEWHERE)
    assert second.is_quiet
    assert (second.instance, second.owner) != (first.instance, first.owner)


@pytest.mark.parametrize("whole_directory", [True, False], ids=["whole directory", "database only"])
async def test_a_restored_backup_is_a_quiet_copy(
    database: Database, tmp_path: Path, dialect: str, request: pytest.FixtureRequest, whole_directory: bool
) -> None:
    data = tmp_path / "data"
    original = await start(database, data, wanted_name="compose")
    run = a_run(status="running", attempt=1)

    def rows(session: Session) -> None:
        session.add(a_model())
        session.flush()
        session.add(run)
        session.add(a_run(status="pending"))
        session.add(a_run(status="completed"))
        session.flush()
        session.add(an_attempt(run.id))

    await database.write(rows)
    async with copied(database, data, dialect, request, whole_directory=whole_directory) as (db, to):
        assert (await look(db, to, HERE)).is_elsewhere
        copy = await start(db, to, wanted_name="compose")
        assert copy.copy_of is not None
        assert copy.copy_of.instance == "compose"
        assert copy.instance.startswith("copy-")
        assert copy.owner != original.owner
        assert copy.name != original.name
        assert "benchyard adopt" in (copy.notice or "")
        assert await start(db, to) == copy, "it stays one"
        now = ManualClock().now()
        assert await db.read(run_queries.live) == []
        assert await db.read(run_queries.unremoved_attempts) == []
        assert await db.read(run_queries.holding_attempts) == []
        assert await db.read(lambda s: run_queries.due(s, now, 10)) == []

        assert (await adopt(db, to, ManualClock(), HERE)).instance == "compose"
        adopted = await start(db, to)
        assert (adopted.instance, adopted.owner, adopted.copy_of) == ("compose", original.owner, None)
        assert [row.id for row, _ in await db.read(run_queries.live)] == [run.id]
        assert len(await db.read(lambda s: run_queries.due(s, now, 10))) == 1
        with pytest.raises(CannotSettle, match="not a copy"):
            await adopt(db, to, ManualClock(), HERE)


async def test_a_copy_that_was_never_started_can_be_adopted(
    database: Database, tmp_path: Path, dialect: str, request: pytest.FixtureRequest
) -> None:
    """The installation moves to another machine: stopped there, restored here."""
    original = await start(database, tmp_path / "data")
    async with copied(database, tmp_path / "data", dialect, request, whole_directory=False) as (db, to):
        await adopt(db, to, ManualClock(), ELSEWHERE)
        moved = await start(db, to, machine=ELSEWHERE)
        assert (moved.instance, moved.owner, moved.is_quiet) == (original.instance, original.owner, False)


@pytest.mark.parametrize(("leader", "quiet"), [("we", False), ("somebody", True), (None, False)])
async def test_a_database_of_an_older_version(
    database: Database, tmp_path: Path, dialect: str, leader: str | None, quiet: bool
) -> None:
    """It says nothing of its home. With SQLite, who led last tells; PostgreSQL may have been led by others."""
    data = tmp_path / "data"
    data.mkdir()
    ours = own_name(data)
    now = ManualClock().now()
    holder = ours if leader == "we" else leader

    def older(session: Session) -> None:
        queries.store(session, {queries.INSTANCE: "by-old"})
        if holder is not None:
            lease_queries.acquire(session, holder, now - timedelta(hours=1), now - timedelta(hours=1))

    await database.write(older)
    upgraded = await start(database, data)
    assert upgraded.is_quiet is (quiet and dialect == "sqlite")
    assert (upgraded.instance == "by-old") is not upgraded.is_quiet


async def test_somebody_may_say_that_it_is_a_copy(database: Database, tmp_path: Path) -> None:
    first = await start(database, tmp_path / "data")
    copy = await start(database, tmp_path / "data", as_copy=True)
    assert copy.is_quiet
    assert await start(database, tmp_path / "data", as_copy=True) == copy
    await adopt(database, tmp_path / "data", ManualClock(), HERE)
    assert (await start(database, tmp_path / "data")).owner == first.owner


async def test_a_database_that_others_use_is_no_copy(database: Database, tmp_path: Path) -> None:
    await start(database, tmp_path / "data")
    now = ManualClock().now()
    await database.write(lambda s: lease_queries.acquire(s, "somebody", now, now + timedelta(seconds=15)))
    with pytest.raises(CannotSettle, match="another orchestrator is using this database"):
        await start(database, tmp_path / "data", as_copy=True)


@pytest.mark.parametrize("dialect", ["postgresql"])
async def test_orchestrators_that_share_a_database_are_one_installation(database: Database, tmp_path: Path) -> None:
    one, two = await start(database, tmp_path / "one"), await start(database, tmp_path / "two", machine=ELSEWHERE)
    assert (one.instance, one.owner, one.is_quiet) == (two.instance, two.owner, two.is_quiet)
    assert one.name != two.name
    present = Presence(one.owner, one.place)
    assert await start(database, tmp_path / "two") == two, "its presence disturbs nobody"
    present.leave()


@pytest.mark.parametrize("dialect", ["sqlite"])
async def test_the_same_installation_does_not_run_twice(
    database: Database, tmp_path: Path, dialect: str, request: pytest.FixtureRequest
) -> None:
    original = await start(database, tmp_path / "data")
    present = Presence(original.owner, original.place)
    try:
        async with copied(database, tmp_path / "data", dialect, request, whole_directory=True) as (db, to):
            assert (await start(db, to)).is_quiet
            with pytest.raises(CannotSettle, match="is running on this machine"):
                await adopt(db, to, ManualClock(), HERE)
            present.leave()
            await adopt(db, to, ManualClock(), HERE)
            present = Presence(original.owner, (await start(db, to)).place)
            with pytest.raises(CannotSettle, match="another process on this machine runs this installation"):
                await start(database, tmp_path / "data")
    finally:
        present.leave()
