"""Searching a model's text for its answer without holding up the event loop: heartbeats go on, whatever the text is.

The searches themselves are linear in the text. A long one runs in a thread, and is given up after a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from runner.benchmarks.extraction import Extraction, Rule

SHORT_CHARS = 64_000
"""Searched at once: a thread would take longer."""
SEARCH_S = 60.0


async def search(extract: Callable[[str], Extraction], text: str, *, within_s: float = SEARCH_S) -> Extraction:
    """What `extract` finds in the text; nothing if that takes too long."""
    if len(text) <= SHORT_CHARS:
        return extract(text)
    try:
        async with asyncio.timeout(within_s):
            return await asyncio.to_thread(extract, text)
    except TimeoutError:
        return Extraction(None, Rule.NONE)
