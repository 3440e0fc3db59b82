"""A disk of its own, small enough to be filled: ext4 in a file, mounted over a loop device."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

MIB = 1 << 20


def _run(*command: str, check: bool = True) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")


class SmallDisk:
    """`path` is where it is mounted, for as long as the block lasts."""

    def __init__(self, folder: Path, mib: int) -> None:
        self._image, self.path = folder / "disk.img", folder / "disk"
        self._mib = mib

    def __enter__(self) -> SmallDisk:
        self.path.mkdir()
        with self._image.open("wb") as image:
            image.truncate(self._mib * MIB)
        _run("mkfs.ext4", "-q", "-m", "0", str(self._image))
        _run("mount", "-o", "loop", str(self._image), str(self.path))
        self.path.chmod(0o777)
        return self

    def __exit__(self, *_: object) -> None:
        _run("umount", "--lazy", str(self.path), check=False)
        self._image.unlink(missing_ok=True)

    @property
    def free(self) -> int:
        room = os.statvfs(self.path)
        return room.f_bavail * room.f_frsize

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"

    def fill(self) -> None:
        """Until not a byte fits."""
        chunk = MIB
        with self._ballast.open("ab", buffering=0) as file:
            while chunk:
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, chunk)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    chunk //= 2

    def make_room(self) -> None:
        self._ballast.unlink(missing_ok=True)
