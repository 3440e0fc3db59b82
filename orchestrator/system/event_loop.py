"""Wraps uvloop, on which the service runs; a leaf. Tests and commands use asyncio's own loop."""

from __future__ import annotations

import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

COLLECT_AFTER = (20_000, 10, 50)
"""Python's defaults suit programs with few objects; here each call in flight has some hundred that live long."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to the end, like `asyncio.run`.

    Existing objects, mostly code, live until the end. Freezing them spares the collector from scanning them, which would
    stop everything for a tenth of a second each time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    return uvloop.run(main)
