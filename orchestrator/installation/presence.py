"""Shows on this machine that an installation is being run, and sees whether another process runs the same one.

A name in the kernel's table of sockets, which goes with the process whatever happens to it, and which every user can read.
Processes in other network namespaces, such as containers, are out of sight.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
from pathlib import Path

from orchestrator.installation.place import Place

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
