"""Files that only the service's user may read, and free space on the disk."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import NoSpace
from orchestrator.startup import BadConfiguration

DIRECTORY, FILE = 0o700, 0o600


def only_for_owner() -> None:
    """From now on, files that this process creates are readable only by its user."""
    os.umask(0o077)


def private_directory(path: Path) -> None:
    """Create the data directory if needed, and make it and its direct content inaccessible to others.

    Files further down are protected by the directory. What belongs to another user is left alone: only its owner can change
    it, and a mounted directory may not be ours.
    """
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
    """Create an empty file that only its owner can read, before anything else creates it with another mode."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE))
    _close(path, FILE)


def _close(path: Path, mode: int) -> None:
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        path.chmod(mode)


GIB = 1 << 30


@dataclass(frozen=True)
class DiskRoom:
    """A directory's disk, on which a number of bytes and a share of the space must stay free."""

    folder: Path
    min_free_bytes: int = 2 * GIB
    min_free_share: float = 0.05

    def usage(self) -> tuple[int, int]:
        """Free and total bytes, for the nearest existing directory."""
        folder = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        usage = shutil.disk_usage(folder)
        return usage.free, usage.total

    def spare(self) -> int:
        """Bytes that may still be written; negative if too little is free already."""
        free, total = self.usage()
        return free - max(self.min_free_bytes, int(self.min_free_share * total))

    def trouble(self) -> str | None:
        """Why nothing more should be written there, or None."""
        folder = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        try:
            state = os.statvfs(folder)
        except OSError as error:
            return f"the disk of {self.folder} cannot be read: {error.strerror}"
        if state.f_flag & os.ST_RDONLY:
            return f"the file system of {self.folder} is read-only"
        if state.f_files and not state.f_favail:
            return f"the file system of {self.folder} has no room for another file"
        if self.spare() < 0:
            return f"the disk of {self.folder} {self._left().removeprefix('which ')}"
        return None

    def require(self, size: int, purpose: str) -> None:
        """Raises `NoSpace` unless `size` more bytes fit."""
        if size > self.spare():
            raise NoSpace(f"{purpose} needs {_shown(size)} at {self.folder}, {self._left()}. Make room and try again.")

    @contextmanager
    def full_is_said(self, purpose: str) -> Iterator[None]:
        """Turns a disk that fills up nevertheless into `NoSpace`."""
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise NoSpace(f"The disk of {self.folder} is full; {purpose} was given up. Make room and try again.") from error

    def _left(self) -> str:
        free, total = self.usage()
        reserve = max(self.min_free_bytes, int(self.min_free_share * total))
        return f"which has {_shown(free)} free, of which {_shown(reserve)} are kept"


def _shown(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB // 10 else f"{size / (1 << 20):.1f} MiB"
