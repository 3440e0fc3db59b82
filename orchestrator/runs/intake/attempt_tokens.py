"""Who a runner is: its token leads to the attempt it was given for. The token is stored hashed and dies with the attempt."""

from __future__ import annotations

from fastapi import Request

from orchestrator.db.session import Database
from orchestrator.errors import Unauthorized
from orchestrator.runs import queries as run_queries
from orchestrator.runs.tables import Attempt
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import same_token, token_hash

BELIEVED_S = 1.0
MANY = 1000


class Callers:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._known: dict[str, tuple[float, Attempt]] = {}

    async def of(self, request: Request, run_id: str | None = None, *, recent: bool = False) -> Attempt:
        """The attempt that calls; with `run_id`, only if that run is its own.

        `recent` takes an answer that is up to a second old, for callers that check the attempt again in the transaction
        that changes something, as the intake of events does.
        """
        token = bearer(request)
        attempt = await self.find(token, recent=recent) if token else None
        if attempt is None or (run_id is not None and attempt.run_id != run_id):
            raise Unauthorized("This runner's token is not valid (any more) for this run: it must stop.")
        return attempt

    async def find(self, token: str, *, recent: bool = False) -> Attempt | None:
        """The living attempt behind a token."""
        digest, now = token_hash(token), self._clock.monotonic()
        known = self._known.get(digest)
        if recent and known is not None and known[0] > now:
            return known[1]
        attempt = await self._db.read(lambda s: run_queries.attempt_by_token(s, digest))
        self._known.pop(digest, None)
        if attempt is None or attempt.token_hash is None or not same_token(attempt.token_hash, digest):
            return None
        self.remember(token, attempt)
        return attempt

    def remember(self, token: str, attempt: Attempt) -> None:
        """This token was just now that of this attempt."""
        if len(self._known) >= MANY:
            self._known.clear()
        self._known[token_hash(token)] = self._clock.monotonic() + BELIEVED_S, attempt


def bearer(request: Request) -> str:
    """The token that the request carries; empty when there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
