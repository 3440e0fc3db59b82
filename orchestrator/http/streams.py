"""Server-sent events: the common parts of all streams, and the layer that ends a stream when its caller loses access.

The gate checks a request once, but a stream is one request that lasts for hours. Meanwhile a token may be revoked or expire,
or its user may sign out everywhere or leave the workspace.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from fastapi import Header, Query
from fastapi.responses import StreamingResponse
from sqlmodel import Session
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.accounts import queries as account_queries
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.db.workspaces import acting_as
from orchestrator.http.access.identity import Caller
from orchestrator.http.context import Services
from orchestrator.http.policy import MATCH
from orchestrator.sign_in.tables import LoginSession
from orchestrator.system.clock import Clock
from orchestrator.tokens import queries as token_queries

END = "event: end\ndata: {}\n\n"
CHECK_INTERVAL_S = 1.0
GOODBYE = b": this sign-in has ended\n\n"

LastEventId = Annotated[str | None, Header(max_length=30, alias="Last-Event-ID")]
After = Annotated[int | None, Query(ge=0, le=2**53, description="Replay everything after this event number.")]


class EventStream(StreamingResponse):
    """A client that stops reading is disconnected by `orchestrator.serving.timeouts`."""

    media_type = "text/event-stream"


def stream_of(lines: AsyncIterator[str]) -> EventStream:
    return EventStream(lines, headers={"cache-control": "no-store", "x-accel-buffering": "no"})


def stream_start(last_event_id: str | None, after: int | None) -> int | None:
    if last_event_id and last_event_id.isdecimal():
        return min(int(last_event_id), 2**53)
    return after


class StreamRevocation:
    """Sits inside the gate and applies only to streams."""

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

        async def watch(message: Message) -> None:
            nonlocal begun, over
            begun = begun or message["type"] == "http.response.start"
            over = over or (message["type"] == "http.response.body" and not message.get("more_body", False))
            await send(message)

        work = asyncio.ensure_future(self._app(scope, receive, watch))
        try:
            while not (await asyncio.wait({work}, timeout=CHECK_INTERVAL_S))[0]:
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
            return True  # cannot tell without the database


def may_still(session: Session, caller: Caller, now: datetime) -> bool:
    """Whether the token or session still exists, and its user is still in the workspace."""
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
