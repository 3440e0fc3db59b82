"""When a failed try is made again, and after how long. Pure; randomness is an argument."""

from __future__ import annotations

import random
from dataclasses import dataclass

from orchestrator.gateway.edge.errors import UpstreamError

RETRIED_STATUSES = frozenset({408, 409, 425, 429})
CROWDED_STATUSES = frozenset({429, 503, 529})


@dataclass(frozen=True)
class RetryPolicy:
    """At most `max_tries` tries that failed by themselves; being told to wait counts only against the time.

    `total_s` bounds everything from the first try to the last.
    """

    max_tries: int = 6
    total_s: float = 900.0
    base_s: float = 0.5
    longest_s: float = 60.0
    longest_crowded_s: float = 5.0  #: the limiter holds calls back as it is

    def delay_s(self, error: UpstreamError, failures: int, spent_s: float, rng: random.Random) -> float | None:
        """Seconds until the next try after the given number of failures, or None to give up."""
        if not error.retry or (failures >= self.max_tries and not error.crowded):
            return None
        longest_s = self.longest_crowded_s if error.crowded else self.longest_s
        backoff = min(self.base_s * 2.0 ** min(failures - 1, 30), longest_s)
        delay = backoff * rng.uniform(0.5, 1.0)
        if error.retry_after_s is not None:
            # A little later than asked and not all at once.
            delay = error.retry_after_s + rng.uniform(0.0, min(backoff, 0.1 * error.retry_after_s + 0.05))
        return delay if spent_s + delay <= self.total_s else None


def retried(status: int) -> bool:
    return status in RETRIED_STATUSES or status >= 500
