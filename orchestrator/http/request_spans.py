"""A span for every request: method, route and status; neither query, header nor body."""

from __future__ import annotations

import os
from datetime import datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.system.clock import Clock
from orchestrator.system.telemetry import Attribute, SpanRecord, Telemetry, incoming


class RequestSpans:
    """Stands around all other middleware. The route's template is the span's name, since a path has names of people's
    things in it."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry, clock: Clock) -> None:
        self._app = app
        self._telemetry = telemetry
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = self._clock.now(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            self._record(scope, began, status)

    def _record(self, scope: Scope, began: datetime, status: int) -> None:
        headers = dict(scope["headers"])
        sent = incoming(headers.get(b"traceparent", b"").decode("latin-1"))
        method = scope["method"] if scope["method"].isalpha() and len(scope["method"]) < 10 else "_OTHER"
        route = getattr(scope.get("route"), "path", None)
        attributes: dict[str, Attribute] = {"http.request.method": method, "http.response.status_code": status}
        if route:
            attributes["http.route"] = route
        failed = status >= 500
        if failed:
            attributes["error.type"] = str(status)
        trace_id, parent = sent or (int.from_bytes(os.urandom(16)) or 1, None)
        self._telemetry.record(
            SpanRecord(
                name=f"{method} {route}" if route else method,
                trace_id=trace_id,
                span_id=int.from_bytes(os.urandom(8)) or 1,
                parent_id=parent,
                started_at=began,
                ended_at=self._clock.now(),
                kind="server",
                attributes=attributes,
                error=str(status) if failed else None,
            )
        )
