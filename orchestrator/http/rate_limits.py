"""How many requests a second: buckets for each user or token, and for each workspace. The gate asks once it knows who it is.
The installation's own token is not limited, so that somebody can always raise a limit."""

from __future__ import annotations

import math

from orchestrator.errors import RateLimited
from orchestrator.http.callers import Caller
from orchestrator.http.token_buckets import Buckets
from orchestrator.limits.service import Limits
from orchestrator.scopes import Scope
from orchestrator.system.clock import Clock

BURST_S = 2.0
"""So many seconds' worth may come at once, and at least a page with all it loads."""
LEAST_BURST = 10.0


class Pace:
    """Limits nobody until it is opened with the limits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limits: Limits | None = None
        self._buckets = Buckets()

    def open(self, limits: Limits | None) -> None:
        self._limits = limits

    async def check(self, caller: Caller, *, spends: bool) -> None:
        """Raises `RateLimited` when it is too much; `spends`: it starts something that asks models."""
        if self._limits is None or caller.scope is Scope.AGENT:
            return
        if spends:
            await self._limits.check_spending(caller.workspace_id, caller.user_id)
        if caller.user_id is None and not caller.token_id:
            return
        both = await self._limits.of(caller.workspace_id, caller.user_id)
        who = f"user {caller.user_id}" if caller.user_id is not None else f"token {caller.token_id}"
        place = f"workspace {caller.workspace_id}"
        for name, rate, whose in (
            (f"{place} {who}", both.own.requests_per_second, "Your limit"),
            (place, both.workspace.requests_per_second, "The workspace's limit"),
        ):
            if rate is None:
                continue
            wait_s = self._buckets.take(name, rate, max(rate * BURST_S, LEAST_BURST), self._clock.monotonic())
            if wait_s:
                sentence = f"{whose} of {rate:g} requests a second is used up; wait, and send fewer."
                raise RateLimited(sentence, math.ceil(wait_s))
