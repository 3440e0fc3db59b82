"""A backup is whole, is checked before anything is replaced, and gives back what was there; vacuum gives space back."""

from __future__ import annotations

import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete, insert
from sqlmodel import Session, select

from orchestrator.backups.file_format import BadBackup
from orchestrator.backups.service import make_backup, restore_backup
from orchestrator.db.session import Database
from orchestrator.db.vacuum import VacuumFailed, vacuum
from orchestrator.installation.identity import DataDirectoryBusy, DataLock
from orchestrator.models.tables import LlmModel
from orchestrator.retention.tables import DeletedRun
from orchestrator.runs.tables import ContainerRun, ItemRow
from tests.manual_clock import START
from tests.postgres_from_wheel import PostgresFromWheel
from tests.rows import a_model, a_run, an_item

pytestmark = pytest.mark.anyio
PARTS = frozenset({"artefacts", "archives"})


@pytest.fixture
def other_url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database to restore to."""
    if dialect == "sqlite":
        yield f"sqlite:///{tmp_path / 'restored' / 'benchyard.db'}"
        return
    server: PostgresFromWheel = request.getfixturevalue("postgres")
    name = server.create()
    yield server.url(name)
    server.drop(name)


def fill(session: Session) -> str:
    session.add(a_model(display_name="tabs\tand\nlines \\ and \N{SNOWMAN}"))
    session.flush()
    run = a_run(status="completed")
    session.add(run)
    session.flush()
    session.add(an_item(run.id))
    return run.id


async def test_there_and_back(database: Database, other_url: str, tmp_path: Path) -> None:
    run_id = await database.write(fill)
    data, target = tmp_path / "data", tmp_path / "restored"
    for name in ("artefacts/r1/a.txt", "archives/r1/result.tar.gz", "packs/x.pack"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(name)
    (data / "token").write_text("secret-token")
    (data / "master_key").write_text("secret-key")
    file = tmp_path / "backup.tar.gz"
    made = make_backup(database.url, data, file, parts=PARTS, version="1.2", now=START)
    assert file.stat().st_mode & 0o777 == 0o600
    assert made.parts["artefacts"] == len("artefacts/r1/a.txt")
    with tarfile.open(file) as tar:
        names = tar.getnames()
    assert (names[0], names[-1]) == ("about.json", "manifest.json")
    assert not [name for name in names if name.endswith(("token", "master_key")) or name.startswith("packs")]
    with pytest.raises(BadBackup, match="there already"):
        make_backup(database.url, data, file, parts=PARTS, version="1.2", now=START)

    done = restore_backup(file, other_url, target)
    assert (done.about.version, done.replaced, done.has_master_key) == ("1.2", False, False)
    assert (target / "archives/r1/result.tar.gz").read_text() == "archives/r1/result.tar.gz"
    assert target.stat().st_mode & 0o777 == 0o700
    restored = Database(other_url)
    try:

        def read(session: Session) -> tuple[list[str], list[str], object]:
            models = session.exec(select(LlmModel.display_name)).all()
            return list(models), list(session.exec(select(ContainerRun.id)).all()), session.exec(select(ItemRow.data)).one()

        models, runs, item = await restored.read(read)
        assert models == ["tabs\tand\nlines \\ and \N{SNOWMAN}"]
        assert runs == [run_id]
        assert item == {"answer": "x" * 50}
        await restored.write(lambda s: s.add(a_model("another")))  # numbers go on after those that were restored
    finally:
        await restored.close()
    with pytest.raises(BadBackup, match="--force"):
        restore_backup(file, other_url, target)
    assert restore_backup(file, other_url, target, force=True).replaced


@pytest.fixture
def small_backup(tmp_path: Path, sqlite_template: Path) -> Path:
    file = tmp_path / "backup.tar.gz"
    make_backup(f"sqlite:///{sqlite_template}", tmp_path / "data", file, parts=frozenset(), version="1", now=START)
    return file


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage",
    [_cut, _flip, lambda _: b"", lambda _: b"PK not a tar"],
    ids=["cut", "flip", "empty", "zip"],
)
def test_a_damaged_backup_replaces_nothing(small_backup: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    small_backup.write_bytes(damage(small_backup.read_bytes()))
    there = tmp_path / "there"
    there.mkdir()
    with sqlite3.connect(there / "benchyard.db") as connection:
        connection.execute("CREATE TABLE mine (id int)")
    connection.close()
    before = (there / "benchyard.db").read_bytes()
    with pytest.raises(BadBackup):
        restore_backup(small_backup, f"sqlite:///{there / 'benchyard.db'}", there, force=True)
    assert (there / "benchyard.db").read_bytes() == before
    assert {path.name for path in there.iterdir()} <= {"benchyard.db", "lock"}


@pytest.mark.parametrize("name", ["../escape", "/etc/passwd", "database/../../x", "token", "database"])
def test_entries_that_lead_elsewhere_are_refused(small_backup: Path, tmp_path: Path, name: str) -> None:
    hostile = tmp_path / "hostile.tar.gz"
    with tarfile.open(small_backup) as source, tarfile.open(hostile, "w:gz") as tar:
        first = source.next()
        assert first is not None
        tar.addfile(first, source.extractfile(first))
        tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(BadBackup, match="does not belong there"):
        restore_backup(hostile, f"sqlite:///{tmp_path / 'new' / 'benchyard.db'}", tmp_path / "new")
    assert not (tmp_path / "escape").exists()


def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path, sqlite_template: Path) -> None:
    newer = tmp_path / "newer.db"
    newer.write_bytes(sqlite_template.read_bytes())
    with sqlite3.connect(newer) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    file = tmp_path / "backup.tar.gz"
    make_backup(f"sqlite:///{newer}", tmp_path, file, parts=frozenset(), version="99.0", now=START)
    with pytest.raises(BadBackup, match=r"newer version of Benchyard \(99.0, schema 9999\)"):
        restore_backup(file, f"sqlite:///{tmp_path / 'new' / 'benchyard.db'}", tmp_path / "new")


def test_nothing_is_restored_under_a_running_service(small_backup: Path, tmp_path: Path) -> None:
    lock = DataLock(tmp_path / "new")
    try:
        with pytest.raises(DataDirectoryBusy):
            restore_backup(small_backup, f"sqlite:///{tmp_path / 'new' / 'benchyard.db'}", tmp_path / "new")
    finally:
        lock.release()


async def test_vacuum_gives_space_back_while_the_database_is_in_use(database: Database) -> None:
    row = {"kind": "x" * 40, "model_id": 1, "status": "x", "day": "x", "deleted_by": "y" * 200, "purged": True}
    sums = dict.fromkeys(("vcpu_s", "gib_s", "throttled_s", "cost_usd"), 0.0)
    rows = [{**row, **sums, "id": f"r{number}", "created_at": START, "deleted_at": START} for number in range(8000)]
    await database.write(lambda s: s.connection().execute(insert(DeletedRun), rows) and None)
    await database.write(lambda s: s.connection().execute(delete(DeletedRun)) and None)
    done = vacuum(database.url, in_use=True)
    if database.dialect == "sqlite":
        assert done.freed_bytes > 2_000_000
        assert done.after_bytes < 2_000_000
    assert done.after_bytes <= done.before_bytes
    await database.write(lambda s: s.add(a_model()))


def test_an_older_database_is_prepared_once_while_nobody_uses_it(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 1000,)] * 5000)
        connection.execute("DELETE FROM t")
    connection.close()
    with pytest.raises(VacuumFailed, match="stop the service"):
        vacuum(f"sqlite:///{path}", in_use=True)
    assert vacuum(f"sqlite:///{path}", in_use=False).freed_bytes > 4_000_000
    assert vacuum(f"sqlite:///{path}", in_use=True).freed_bytes == 0
