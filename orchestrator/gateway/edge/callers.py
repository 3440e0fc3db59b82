"""Who is behind a token, looked up once or twice a second and not for every call.

A caller that keeps calling does not wait for it: half-way through the time that an answer is believed, it is asked for anew
beside the call. Believing an old answer for a moment only saves the question: a call is not opened in the ledger, nor
answered from it, unless the attempt is still the one that carries out the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.gateway.calls import RunContext
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import token_hash

BELIEVED_S = 1.0
FRESH_S = 0.5
MANY = 1000

Find = Callable[[str], Awaitable[RunContext | None]]


@dataclass
class _Known:
    context: RunContext
    fresh_until: float
    until: float
    asking: asyncio.Task[RunContext | None] | None = None


class Callers:
    """`find` looks up the living run of a token by the token's hash."""

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._forgotten = 0

    async def authenticate(self, token: str) -> RunContext | None:
        digest = token_hash(token)
        now = self._clock.monotonic()
        known = self._known.get(digest)
        if known is None or known.until <= now:
            return await self._look_up(digest)
        if known.fresh_until <= now and known.asking is None:
            known.asking = asyncio.get_running_loop().create_task(self._look_up(digest))
            known.asking.add_done_callback(_noticed)
        return known.context

    async def _look_up(self, digest: str) -> RunContext | None:
        now, forgotten = self._clock.monotonic(), self._forgotten
        context = await self._find(digest)
        self._known.pop(digest, None)
        if context is not None and forgotten == self._forgotten:  # else it may be of before the change
            if len(self._known) >= MANY:
                self._known.clear()
            self._known[digest] = _Known(context, now + FRESH_S, now + BELIEVED_S)
        return context

    def forget(self, run_id: str) -> None:
        """Something about the run has changed."""
        self._forgotten += 1
        self._known = {digest: known for digest, known in self._known.items() if known.context.run_id != run_id}


def _noticed(asking: asyncio.Task[RunContext | None]) -> None:
    """A look-up that fails is made again by the call that cannot do without."""
    if not asking.cancelled():
        asking.exception()
