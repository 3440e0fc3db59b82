"""Ends a stream when whoever opened it may not look any more: their token was revoked or has expired, they signed out
everywhere, or left the workspace. The gate looks at a request once, and a stream is one request for hours."""

from __future__ import annotations

import asyncio
from datetime import datetime

from sqlmodel import Session
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.accounts import queries as account_queries
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.db.workspaces import acting_as
from orchestrator.http.callers import Caller
from orchestrator.http.context import Services
from orchestrator.http.policy import MATCH
from orchestrator.sign_in.tables import LoginSession
from orchestrator.system.clock import Clock
from orchestrator.tokens import queries as token_queries

LOOK_S = 1.0
GOODBYE = b": this sign-in has ended\n\n"


class Leash:
    """Behind the gate, around streams alone."""

    def __init__(self, app: ASGIApp, *, clock: Clock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller | None = scope.get("benchyard.caller") if scope["type"] == "http" else None
        if caller is None or not scope[MATCH].policy.streams or not (caller.token_id or caller.session_id):
            await self._app(scope, receive, send)
            return
        services: Services = scope["app"].state.services
        db = services.db
        begun = over = False

        async def told(message: Message) -> None:
            nonlocal begun, over
            begun = begun or message["type"] == "http.response.start"
            over = over or (message["type"] == "http.response.body" and not message.get("more_body", False))
            await send(message)

        work = asyncio.ensure_future(self._app(scope, receive, told))
        try:
            while not (await asyncio.wait({work}, timeout=LOOK_S))[0]:
                if not await self._still(db, caller):
                    break
        finally:
            if not work.done():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        if not work.cancelled():
            work.result()
        elif begun and not over:
            await send({"type": "http.response.body", "body": GOODBYE, "more_body": False})

    async def _still(self, db: Database, caller: Caller) -> bool:
        try:
            with acting_as(None):
                return await db.read(lambda session: may_still(session, caller, self._clock.now()))
        except DatabaseUnavailable:
            return True  # nobody can say


def may_still(session: Session, caller: Caller, now: datetime) -> bool:
    """Whether the token or the sign-in is still there, and its user in the workspace."""
    if caller.token_id:
        row = token_queries.by_id(session, caller.token_id)
        if row is None or (row.expires_at is not None and row.expires_at <= now):
            return False
    elif caller.session_id is not None:
        login = session.get(LoginSession, caller.session_id)
        if login is None or login.expires_at <= now:
            return False
    if caller.user_id is None or not caller.workspace_id:
        return True
    return account_queries.role_in(session, caller.user_id, caller.workspace_id) is not None
