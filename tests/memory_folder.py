"""Folders in memory for databases of tests, which are made, synced and deleted all the time."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 2 << 30


def new_folder(prefix: str) -> Path:
    """A folder of our own in memory, or on the disk where memory is short. Its path is short, as sockets want it."""
    there = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ENOUGH_BYTES
    return Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY if there else "/tmp"))
