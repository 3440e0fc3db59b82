"""The one door to uvloop, a leaf: how the service runs. Tests and commands use asyncio's own loop."""

from __future__ import annotations

import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

COLLECT_AFTER = (20_000, 10, 50)
"""Python's own numbers are for programs that make little; here a call in flight is some hundred objects that live long."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end, as `asyncio.run` does.

    What exists by now, the code above all, stays to the end: the collector need not look at it again, which would stop
    everything for a tenth of a second each time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    return uvloop.run(main)
