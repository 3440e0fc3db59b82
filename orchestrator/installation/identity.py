"""The identity of this installation: its lock, names and location, and what its data directory records about it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import uuid
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from pathlib import Path

from orchestrator.startup import CannotStart

NAME_FILE = "orchestrator-id"


class DataDirectoryBusy(CannotStart):
    """Another orchestrator is using this data directory."""


class DataLock:
    """Held while the process lives; the kernel releases it in any case."""

    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        self._file: TextIOWrapper = (data_dir / "lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "?"
            self._file.close()
            raise DataDirectoryBusy(
                f"another Benchyard (process {holder}) uses {data_dir}; stop it with `benchyard down`, "
                "or set BENCHYARD_DATA to another directory"
            ) from error
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()


def own_name(data_dir: Path) -> str:
    """The name of this orchestrator, stable across restarts."""
    path = data_dir / NAME_FILE
    if not path.exists():
        path.write_text(uuid.uuid4().hex[:12] + "\n")
    return path.read_text().strip()


def renew_name(data_dir: Path) -> str:
    """Choose a new name, for a data directory that was copied."""
    fresh = data_dir / f"{NAME_FILE}.new"
    fresh.write_text(uuid.uuid4().hex[:12] + "\n")
    fresh.replace(data_dir / NAME_FILE)
    return own_name(data_dir)


FILE = "installation.json"


@dataclass(frozen=True)
class Own:
    """Labels of what is ours on an engine."""

    instance: str
    owner: str


def remember(data_dir: Path, identity: Own, machine: str) -> None:
    own_name(data_dir)
    location = directory_location(data_dir, machine).as_text()
    written = json.dumps({"instance": identity.instance, "owner": identity.owner, "place": location})
    path = data_dir / FILE
    if not path.exists() or path.read_text() != written:
        path.write_text(written)


def recall(data_dir: Path, machine: str) -> Own | None:
    """None if nothing was stored, or it was stored at another location."""
    try:
        stored = json.loads((data_dir / FILE).read_text())
        if directory_location(data_dir, machine).is_same(Location.from_text(stored["place"])):
            return Own(stored["instance"], stored["owner"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None


MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True)
class Location:
    key: str
    machine: str = ""
    """Empty if unknown, in which case it is not compared."""

    def is_same(self, other: Location) -> bool:
        return self.key == other.key and (not self.machine or not other.machine or self.machine == other.machine)

    def as_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Location:
        return cls(**json.loads(text))


def directory_location(data_dir: Path, machine: str) -> Location:
    """The location of a database in the data directory. The file must exist."""
    path = data_dir / NAME_FILE
    return Location(f"directory:{path.read_text().strip()}:{path.stat().st_ino}", machine)


def server_location(system_identifier: str | None, database: str) -> Location:
    """The location of a PostgreSQL database."""
    return Location(f"postgresql:{system_identifier or 'unknown'}:{database}")


def machine_word(identifier: str) -> str:
    """A digest of the machine's identifier, which is confidential and not stored itself."""
    return hashlib.sha256(f"benchyard:{identifier}".encode()).hexdigest()[:16] if identifier else ""


def this_machine() -> str:
    """Identifies the machine of this process; empty if it has no identifier."""
    try:
        return machine_word(MACHINE_ID.read_text().strip())
    except OSError:
        return ""


TABLE = Path("/proc/net/unix")
PREFIX = "benchyard/"


def _name(owner: str, location: Location) -> str:
    return f"{PREFIX}{owner}/{hashlib.sha256(location.key.encode()).hexdigest()[:16]}"


class Presence:
    """Held while the process lives. Orchestrators that share a database share the name."""

    def __init__(self, owner: str, location: Location) -> None:
        self._socket: socket.socket | None = None
        if not TABLE.exists():
            return
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(f"\0{_name(owner, location)}")
        except OSError:
            listener.close()
            return
        self._socket = listener

    def leave(self) -> None:
        if self._socket is not None:
            self._socket.close()


def is_run_elsewhere(owner: str, location: Location) -> bool:
    """Whether a process on this machine runs the same installation from another location."""
    own_name = _name(owner, location)
    with contextlib.suppress(OSError):
        for line in TABLE.read_text().splitlines():
            name = line.rpartition(" ")[2].removeprefix("@")
            if name.startswith(f"{PREFIX}{owner}/") and name != own_name:
                return True
    return False
