"""A service that cannot start says why in one sentence; what it keeps can be read by its owner only."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.app import create_app
from orchestrator.db.migrate import DatabaseTooNew, DatabaseUnusable, migrate, newest_revision
from orchestrator.settings import Settings
from orchestrator.startup import BadConfiguration
from orchestrator.system.files import private_directory
from tests.served import served

FROM_A_NEWER_VERSION = "9999"


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00", b"two\nlines", b"x" * 201, "tür".encode(), b"a\x1b[2J"],
    ids=["binary", "lines", "long", "letters", "escape"],
)
def test_a_token_file_that_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(BadConfiguration, match="does not hold a token"):
        create_app(Settings(data=tmp_path))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"short", b""], ids=["binary", "short", "empty"])
def test_a_master_key_that_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "master_key").write_bytes(content)
    with pytest.raises(BadConfiguration, match="openssl rand"):
        create_app(Settings(data=tmp_path))


def test_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(BadConfiguration, match="Set BENCHYARD_DATA"):
        create_app(Settings(data=tmp_path / "data"))


def test_a_newer_database_is_named(tmp_path: Path, sqlite_template: Path) -> None:
    path = tmp_path / "newer.db"
    path.write_bytes(sqlite_template.read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (FROM_A_NEWER_VERSION,))
    connection.close()
    with pytest.raises(DatabaseTooNew) as refused:
        migrate(f"sqlite:///{path}")
    assert FROM_A_NEWER_VERSION in str(refused.value)
    assert newest_revision() in str(refused.value)


def test_a_database_that_does_not_answer() -> None:
    with pytest.raises(DatabaseUnusable) as refused:
        migrate("postgresql+psycopg://somebody:a-password@127.0.0.1:1/yard")
    assert "DATABASE_URL" in str(refused.value)
    assert "a-password" not in str(refused.value)


def test_a_damaged_database_ends_the_command_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "benchyard.db").write_bytes(b"this was a database once " * 100)
    environment = {**os.environ, "BENCHYARD_DATA": str(tmp_path), "BENCHYARD_PORT": "0", "BENCHYARD_TOKEN": "t"}
    command = [sys.executable, "-P", "-m", "orchestrator.cli", "serve"]
    ended = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith(f"benchyard: The file {tmp_path / 'benchyard.db'} is damaged")


@pytest.mark.anyio
async def test_only_the_owner_can_read_the_data(new_settings: Callable[..., Settings]) -> None:
    settings = new_settings()
    settings.data.chmod(0o755)
    (settings.data / "benchyard.db").chmod(0o644)
    (settings.data / "archives").mkdir(mode=0o755)
    before = os.umask(0)
    try:
        async with served(settings):
            modes = {path.name: path.stat().st_mode & 0o777 for path in settings.data.iterdir()}
    finally:
        os.umask(before)
    assert settings.data.stat().st_mode & 0o777 == 0o700
    for name in ("benchyard.db", "benchyard.db-wal", "master_key"):
        assert modes[name] == 0o600
    assert modes["archives"] == 0o700


def test_links_out_of_the_directory_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "outside").touch(mode=0o644)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to(tmp_path / "outside")
    private_directory(tmp_path / "data")
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o644
