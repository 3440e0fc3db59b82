"""Where a database is at home: what tells an installation from a copy of it that was restored somewhere else.

With SQLite the home is a data directory: the identifier in its file `orchestrator-id`, the number of that file in its file
system, which no copy keeps, and the machine. With PostgreSQL it is the database itself, since several orchestrators may
share one: the server's own identifier and the database's number, neither of which is in a dump. A clone of a whole disk or
volume cannot be told from the original.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestrator.installation.identity import NAME_FILE

MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True)
class Place:
    key: str
    machine: str = ""
    """Empty where it is not known, which then decides nothing."""

    def is_same(self, other: Place) -> bool:
        return self.key == other.key and (not self.machine or not other.machine or self.machine == other.machine)

    def as_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Place:
        return cls(**json.loads(text))


def directory_place(data_dir: Path, machine: str) -> Place:
    """Of a database that lies in the data directory. The file must be there."""
    path = data_dir / NAME_FILE
    return Place(f"directory:{path.read_text().strip()}:{path.stat().st_ino}", machine)


def server_place(system_identifier: str | None, database: str) -> Place:
    """Of a PostgreSQL database."""
    return Place(f"postgresql:{system_identifier or 'unknown'}:{database}")


def machine_word(identifier: str) -> str:
    """A machine's identifier is confidential: only a digest of it is stored."""
    return hashlib.sha256(f"benchyard:{identifier}".encode()).hexdigest()[:16] if identifier else ""


def this_machine() -> str:
    """Of the machine that this process is on; empty where it has no identifier."""
    try:
        return machine_word(MACHINE_ID.read_text().strip())
    except OSError:
        return ""


TABLE = Path("/proc/net/unix")
PREFIX = "benchyard/"


def _name(owner: str, place: Place) -> str:
    return f"{PREFIX}{owner}/{hashlib.sha256(place.key.encode()).hexdigest()[:16]}"


class Presence:
    """Held while the process lives. Orchestrators that share a database share the name."""

    def __init__(self, owner: str, place: Place) -> None:
        self._socket: socket.socket | None = None
        if not TABLE.exists():
            return
        mine = socket.socket(socket.AF_UNIX)
        try:
            mine.bind(f"\0{_name(owner, place)}")
        except OSError:
            mine.close()
            return
        self._socket = mine

    def leave(self) -> None:
        if self._socket is not None:
            self._socket.close()


def is_run_elsewhere(owner: str, place: Place) -> bool:
    """Whether a process of this machine runs the same installation from another place."""
    mine = _name(owner, place)
    with contextlib.suppress(OSError):
        for line in TABLE.read_text().splitlines():
            name = line.rpartition(" ")[2].removeprefix("@")
            if name.startswith(f"{PREFIX}{owner}/") and name != mine:
                return True
    return False
