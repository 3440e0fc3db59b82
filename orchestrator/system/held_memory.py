"""Returns what large requests left behind to the system, whoever made them: exports, replays, refused bodies, archives.

The C library keeps freed memory for each of its arenas, and every thread may have one: a few exports at once left more than
a hundred megabytes with the process for good. Looking costs one small file every few seconds; memory is returned only after
it has grown.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from orchestrator.system.memory import LARGE_BYTES, give_back

LOOK_S = 5.0
GROWTH_BYTES = 16 << 20
_PAGES = Path("/proc/self/statm")


def resident_bytes() -> int:
    """0 where the kernel does not say."""
    try:
        return int(_PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


class HeldMemory:
    def __init__(self, resident: Callable[[], int], trim: Callable[[], object]) -> None:
        self._resident = resident
        self._trim = trim
        self._level = resident()

    def look(self) -> bool:
        """Return memory if the process has grown since it was last returned; says whether it was."""
        now = self._resident()
        if now < self._level + GROWTH_BYTES:
            self._level = min(self._level, now)
            return False
        self._trim()
        self._level = self._resident()
        return True


async def keep_returning(look_s: float = LOOK_S) -> None:
    """In a thread: other threads that need memory meanwhile wait for it, the event loop does not."""
    held = HeldMemory(resident_bytes, lambda: give_back(LARGE_BYTES))
    while True:
        await asyncio.sleep(look_s)
        await asyncio.to_thread(held.look)
