"""The middleware around every route, and two small layers defined here: the sub-path, and cross-origin calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.http.access.authentication import Gate, PageError
from orchestrator.http.access.guard import Guard
from orchestrator.http.audit_trail import AuditTrail
from orchestrator.http.proxies import TrustedProxies
from orchestrator.http.request_spans import RequestSpans
from orchestrator.http.route_table import RouteTable
from orchestrator.http.streams import StreamRevocation
from orchestrator.runs.alias_routes import PathAliases
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock

CORS_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
CORS_REQUEST_HEADERS = ("authorization", "content-type", "idempotency-key", "last-event-id", "x-benchyard-workspace")
CORS_RESPONSE_HEADERS = ("content-disposition", "location", "retry-after", "x-request-id", "www-authenticate")
PREFLIGHT_S = 600


def add_layers(app: FastAPI, settings: Settings, clock: Clock, page_error: PageError) -> None:
    """From outside in: proxies, cross-origin, sub-path, aliases, spans, guard, audit trail, gate, stream revocation.
    Starlette puts the last one added outermost; all of them run before any parsing."""
    routes = app.state.routes = RouteTable(settings)
    routes.serve(app)
    app.add_middleware(StreamRevocation, clock=clock)
    app.add_middleware(
        Gate, authority=app.state.authority, settings=settings, page_error=page_error, rate_limits=app.state.rate_limits
    )
    app.add_middleware(AuditTrail, book=app.state.audit)
    app.add_middleware(Guard, routes=routes)
    if app.state.telemetry.wanted:
        app.add_middleware(RequestSpans, telemetry=app.state.telemetry, clock=clock)
    app.add_middleware(PathAliases)
    app.add_middleware(SubPath, root=settings.root)
    if settings.cors_origins:
        app.add_middleware(CORSMiddleware, **cross_origin(settings.cors_origins))
    if settings.trusted_proxies:
        app.add_middleware(TrustedProxies, networks=settings.trusted_proxies)


def cross_origin(origins: Sequence[str]) -> dict[str, Any]:
    """Pages of these origins may call the API with a bearer token, never with the browser's cookie."""
    return {
        "allow_origins": list(origins),
        "allow_methods": list(CORS_METHODS),
        "allow_headers": list(CORS_REQUEST_HEADERS),
        "expose_headers": list(CORS_RESPONSE_HEADERS),
        "allow_credentials": False,
        "max_age": PREFLIGHT_S,
    }


class SubPath:
    """Serves under a sub-path (`BENCHYARD_PUBLIC_URL=https://lab.example/bench`). Some proxies strip it and some do not,
    so requests are accepted with and without it; addresses in responses include it. `root` has no trailing slash."""

    def __init__(self, app: ASGIApp, *, root: str) -> None:
        self._app = app
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "")

        async def send_outside(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if (location := headers.get("location")) is not None:
                    headers["location"] = self._outside(location, host)
            await send(message)

        if self._root and self._is_under_root(scope["path"]):
            scope = {**scope, "path": scope["path"].removeprefix(self._root) or "/"}
            scope["raw_path"] = scope.get("raw_path", b"").removeprefix(self._root.encode())
        await self._app(scope, receive, send_outside)

    def _is_under_root(self, path: str) -> bool:
        return path == self._root or path.startswith(f"{self._root}/")

    def _outside(self, location: str, host: str) -> str:
        """Where the browser must go, without the host, which a proxy may have changed."""
        parts = urlsplit(location)
        if parts.netloc and parts.netloc != host:
            return location
        path = parts._replace(scheme="", netloc="").geturl()
        return path if not path.startswith("/") or self._is_under_root(parts.path) else self._root + path
