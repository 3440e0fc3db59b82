"""Who is behind a token, looked up once a second and not for every call.

Believing an old answer for a moment only saves the question: a call is not opened in the ledger, nor answered from it,
unless the attempt is still the one that carries out the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from orchestrator.clock import Clock
from orchestrator.gateway.context import RunContext
from orchestrator.identifiers import token_hash

BELIEVED_S = 1.0
MANY = 1000

Find = Callable[[str], Awaitable[RunContext | None]]


class Callers:
    """`find` looks up the living run of a token by the token's hash."""

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._known: dict[str, tuple[float, RunContext]] = {}
        self._forgotten = 0

    async def authenticate(self, token: str) -> RunContext | None:
        digest = token_hash(token)
        now = self._clock.monotonic()
        known = self._known.get(digest)
        if known is not None and known[0] > now:
            return known[1]
        forgotten = self._forgotten
        context = await self._find(digest)
        self._known.pop(digest, None)
        if context is not None and forgotten == self._forgotten:  # else it may be of before the change
            if len(self._known) >= MANY:
                self._known.clear()
            self._known[digest] = now + BELIEVED_S, context
        return context

    def forget(self, run_id: str) -> None:
        """Something about the run has changed."""
        self._forgotten += 1
        self._known = {digest: known for digest, known in self._known.items() if known[1].run_id != run_id}
