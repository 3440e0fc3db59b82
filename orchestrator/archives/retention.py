"""Decides which archives have expired. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

Key = tuple[str, str]
"""(kind, id of the run or batch)"""
Stored = tuple[Key, int, datetime]
"""(key, size, stored at)"""


@dataclass(frozen=True)
class RetentionPolicy:
    max_bytes: int
    days: int | None
    max_total_bytes: int | None

    def oldest(self, now: datetime) -> datetime | None:
        """Archives older than this are not kept."""
        return None if self.days is None else now - timedelta(days=self.days)

    def expired(self, stored: Sequence[Stored], now: datetime) -> list[Key]:
        """Archives that are too old, then the oldest of the others until the rest fits. `stored` must be sorted oldest
        first.
        """
        oldest = self.oldest(now)
        total = sum(size for _, size, _ in stored)
        gone = []
        for key, size, at in stored:
            too_old = oldest is not None and at < oldest
            if not too_old and (self.max_total_bytes is None or total <= self.max_total_bytes):
                break
            gone.append(key)
            total -= size
        return gone
