"""Checks a runner's token before its request body is read, and lets each attempt send one body at a time.

The framework reads and parses a body before it calls a handler, so the check runs before the handler. Bodies of
unauthenticated clients are never held in memory, and a runner that opens many connections holds no more than one body.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request
from starlette.responses import Response

from orchestrator.db.session import Database
from orchestrator.errors import Unauthorized
from orchestrator.http.policy import PolicyRoute
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
        """The calling attempt. With `run_id`, raises `Unauthorized` unless the attempt belongs to that run.

        `recent` accepts a cached result up to a second old, for callers that check the attempt again in the transaction that
        changes something, as the intake of events does.
        """
        token = bearer(request)
        attempt = await self.find(token, recent=recent) if token else None
        if attempt is None or (run_id is not None and attempt.run_id != run_id):
            raise Unauthorized("This runner's token is not valid (any more) for this run: it must stop.")
        return attempt

    async def find(self, token: str, *, recent: bool = False) -> Attempt | None:
        """The live attempt that a token belongs to."""
        digest, now = token_hash(token), self._clock.monotonic()
        entry = self._known.get(digest)
        if recent and entry is not None and entry[0] > now:
            return entry[1]
        attempt = await self._db.read(lambda s: run_queries.attempt_by_token(s, digest))
        self._known.pop(digest, None)
        if attempt is None or attempt.token_hash is None or not same_token(attempt.token_hash, digest):
            return None
        self.remember(token, attempt)
        return attempt

    def remember(self, token: str, attempt: Attempt) -> None:
        """Cache that this token belongs to this attempt."""
        if len(self._known) >= MANY:
            self._known.clear()
        self._known[token_hash(token)] = self._clock.monotonic() + BELIEVED_S, attempt


def bearer(request: Request) -> str:
    """The bearer token of the request; empty if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


IsPoolToken = Callable[[str], Awaitable[bool]]


def authenticated_route(callers: Callers, is_pool_token: IsPoolToken) -> type[PolicyRoute]:
    """A route class that responds with 401 and closes the connection unless the token is valid. Paths without a run also
    accept the token of a warm runner, which claims before it has a run."""

    async def check(request: Request) -> None:
        token, run_id = bearer(request), request.path_params.get("run_id")
        if not token:
            raise _refusal()
        attempt = await callers.find(token, recent=True)
        if attempt is not None and run_id in (None, attempt.run_id):
            return
        if run_id is not None or not await is_pool_token(token):
            raise _refusal()

    class AuthenticatedRoute(PolicyRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def checked(request: Request) -> Response:
                await check(request)
                return await handle(request)

            return checked

    return AuthenticatedRoute


def _refusal() -> Unauthorized:
    error = Unauthorized("This runner's token is not valid (any more) for this run: it must stop.")
    error.headers["connection"] = "close"  # the rest of the body is not read
    return error


class Turns:
    """A lock per key."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = lock, users - 1
