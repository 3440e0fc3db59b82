"""Who may read what the service keeps: its owner and nobody else, whatever the umask. A leaf."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.startup import BadConfiguration

DIRECTORY, FILE = 0o700, 0o600


def only_for_owner() -> None:
    """From here on, what this process makes can be read by its user only."""
    os.umask(0o077)


def private_directory(path: Path) -> None:
    """Make the data directory if need be, and close it and what lies directly in it to everybody else.

    Files deeper down are behind the closed directory. What belongs to another user is left as it is: only its owner can
    change it, and a directory that was mounted may not be ours."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=DIRECTORY)
        if not path.is_dir():
            raise NotADirectoryError(20, "it is not a directory", str(path))
        _close(path, DIRECTORY)
        for entry in path.iterdir():
            if entry.is_symlink():
                continue
            if entry.is_file():
                _close(entry, FILE)
            elif entry.is_dir():
                _close(entry, DIRECTORY)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadConfiguration(
            f"The data directory {path} cannot be used: {why}. Set BENCHYARD_DATA to a directory of yours."
        ) from error


def private_file(path: Path) -> None:
    """Make an empty file that only its owner can read, before somebody else makes it with other modes."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE))
    _close(path, FILE)


def _close(path: Path, mode: int) -> None:
    found = path.stat()
    if found.st_uid == os.geteuid() and found.st_mode & 0o077:
        path.chmod(mode)
