"""Which archives have been kept long enough. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

Stored = tuple[str, int, datetime]
"""(run, size, since when)"""


def expired(stored: Sequence[Stored], now: datetime, *, days: int | None, max_total_bytes: int | None) -> list[str]:
    """Those older than `days`, and the oldest of the rest until all together fit. Given oldest first."""
    oldest = None if days is None else now - timedelta(days=days)
    total = sum(size for _, size, _ in stored)
    gone = []
    for run_id, size, at in stored:
        too_old = oldest is not None and at < oldest
        if not too_old and (max_total_bytes is None or total <= max_total_bytes):
            break
        gone.append(run_id)
        total -= size
    return gone
