"""Returns memory to the system after a large request: the C library keeps what Python has freed for later use."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

LARGE_BYTES = 1 << 20


def _trimmer() -> Callable[[int], object] | None:
    try:
        trim: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):  # a C library other than glibc
        return None
    return trim


_trim = _trimmer()


def give_back(freed_bytes: int) -> None:
    """Call it when a body of this many bytes is no longer needed."""
    if _trim is not None and freed_bytes >= LARGE_BYTES:
        _trim(0)
