"""Who a runner is: its token leads to the attempt it was given for. The token is stored hashed and dies with the attempt."""

from __future__ import annotations

from fastapi import Request

from orchestrator.db import run_queries
from orchestrator.db.session import Database
from orchestrator.db.tables import Attempt
from orchestrator.errors import Unauthorized
from orchestrator.identifiers import same_token, token_hash


async def attempt_of(db: Database, token: str) -> Attempt | None:
    """The living attempt behind a token."""
    digest = token_hash(token)
    attempt = await db.read(lambda s: run_queries.attempt_by_token(s, digest))
    if attempt is None or attempt.token_hash is None or not same_token(attempt.token_hash, digest):
        return None
    return attempt


async def caller(db: Database, request: Request, run_id: str | None = None) -> Attempt:
    """The attempt that calls; with `run_id`, only if that run is its own."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    attempt = await attempt_of(db, token.strip()) if scheme.lower() == "bearer" and token else None
    if attempt is None or (run_id is not None and attempt.run_id != run_id):
        raise Unauthorized("This runner's token is not valid (any more) for this run: it must stop.")
    return attempt
