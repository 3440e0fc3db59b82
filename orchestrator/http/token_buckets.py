"""Token buckets by name: so many a second on average, so many at once. Pure but for what it remembers."""

from __future__ import annotations

from dataclasses import dataclass

MOST = 10_000
"""Names that are remembered; the one that was quiet longest is forgotten first."""


@dataclass
class _Bucket:
    left: float
    at: float


class Buckets:
    def __init__(self) -> None:
        self._known: dict[str, _Bucket] = {}

    def take(self, name: str, rate: float, burst: float, now: float) -> float:
        """Take one: 0.0 if there was one, else how many seconds until there is."""
        bucket = self._known.pop(name, None)
        if bucket is None:
            if len(self._known) >= MOST:
                del self._known[next(iter(self._known))]
            bucket = _Bucket(burst, now)
        self._known[name] = bucket  # the newest is last
        bucket.left = min(burst, bucket.left + max(now - bucket.at, 0.0) * rate)
        bucket.at = now
        if bucket.left >= 1.0:
            bucket.left -= 1.0
            return 0.0
        return (1.0 - bucket.left) / rate
