"""User ids for sandboxes that no other test process on this machine uses.

The kernel counts threads by user id, across processes and containers: two sandboxes with the same ids would take each
other's threads away. A block of ids belongs to the process that holds the lock on its file.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from functools import cache
from pathlib import Path

FIRST, STEP, BLOCKS = 42_000, 32, 600
"""Below 65,536, which is all that a container with a user namespace has; above the blocks that a service gives."""


@cache
def own_uid_base() -> int:
    """The first of `STEP` user ids that belong to this process alone until it ends."""
    folder = Path(tempfile.gettempdir()) / f"benchyard-test-uids-{os.geteuid()}"
    folder.mkdir(exist_ok=True)
    for block in range(BLOCKS):
        descriptor = os.open(folder / str(block), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        return FIRST + block * STEP
    raise AssertionError(f"all {BLOCKS} blocks of user ids in {folder} are locked by test processes that run now")
