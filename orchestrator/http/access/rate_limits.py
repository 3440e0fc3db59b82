"""Request rate limits: one bucket per user or token, and one per workspace. The installation's own token is not limited,
so that somebody can always raise a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from orchestrator.errors import RateLimited
from orchestrator.http.access.identity import Caller
from orchestrator.limits.service import Limits
from orchestrator.scopes import Scope
from orchestrator.system.clock import Clock

BURST_S = 2.0
"""A burst may be this many seconds' worth of requests, and at least a page with everything it loads."""
LEAST_BURST = 10.0
MOST_BUCKETS = 10_000
"""Beyond this, the least recently used bucket is dropped."""


class RateLimits:
    """Has no effect until it is opened with the limits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limits: Limits | None = None
        self._buckets = TokenBuckets()

    def open(self, limits: Limits | None) -> None:
        self._limits = limits

    async def check(self, caller: Caller, *, spends: bool) -> None:
        """Raises `RateLimited` if the limit is exceeded; `spends`: the request starts something that calls models."""
        if self._limits is None or caller.scope is Scope.AGENT:
            return
        if spends:
            await self._limits.check_spending(caller.workspace_id, caller.user_id)
        if caller.user_id is None and not caller.token_id:
            return
        limits = await self._limits.of(caller.workspace_id, caller.user_id)
        holder = f"user {caller.user_id}" if caller.user_id is not None else f"token {caller.token_id}"
        workspace = f"workspace {caller.workspace_id}"
        for name, rate, title in (
            (f"{workspace} {holder}", limits.own.requests_per_second, "Your limit"),
            (workspace, limits.workspace.requests_per_second, "The workspace's limit"),
        ):
            if rate is None:
                continue
            wait_s = self._buckets.take(name, rate, max(rate * BURST_S, LEAST_BURST), self._clock.monotonic())
            if wait_s:
                sentence = f"{title} of {rate:g} requests a second is used up; wait, and send fewer."
                raise RateLimited(sentence, math.ceil(wait_s))


@dataclass
class _Bucket:
    left: float
    at: float


class TokenBuckets:
    """Buckets by name, each with a rate per second and a burst size."""

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}

    def take(self, name: str, rate: float, burst: float, now: float) -> float:
        """Take one token. Returns 0.0, or the seconds until one is available."""
        bucket = self._buckets.pop(name, None)
        if bucket is None:
            if len(self._buckets) >= MOST_BUCKETS:
                del self._buckets[next(iter(self._buckets))]
            bucket = _Bucket(burst, now)
        self._buckets[name] = bucket  # the most recently used is last
        bucket.left = min(burst, bucket.left + max(now - bucket.at, 0.0) * rate)
        bucket.at = now
        if bucket.left >= 1.0:
            bucket.left -= 1.0
            return 0.0
        return (1.0 - bucket.left) / rate
