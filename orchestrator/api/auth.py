"""Who may call: a bearer token for programs, a cookie for pages. One ASGI layer, so that it comes before any parsing."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.api.problems import render
from orchestrator.errors import Forbidden, ServiceError, Unauthorized
from orchestrator.identifiers import new_token, same_token

COOKIE = "benchyard_session"
TOKEN_FILE = "token"  # noqa: S105
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def load_token(configured: str | None, data_dir: Path) -> tuple[str, bool]:
    """The API token, and whether it was made just now. Kept in the data directory, readable by its owner only."""
    if configured:
        return configured, False
    path = data_dir / TOKEN_FILE
    if path.exists() and (kept := path.read_text().strip()):
        return kept, False
    token = new_token()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(token + "\n")
    return token, True


class Authority:
    """Knows the token; the cookie is derived from it, so that a new token ends every session."""

    def __init__(self, token: str) -> None:
        self._token = token
        self.session = hmac.new(token.encode(), b"benchyard page session 1", hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        return same_token(given, self._token)

    def is_session(self, given: str) -> bool:
        return same_token(given, self.session)


class Gate:
    """Lets through only who is known. `needs(path)` is "api" (answers 401), "page" (sends to /login) or None (open)."""

    def __init__(self, app: ASGIApp, *, authority: Authority, needs: Callable[[str], str | None]) -> None:
        self._app = app
        self._authority = authority
        self._needs = needs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (kind := self._needs(scope["path"])) is not None:
            error = self._refusal(Headers(scope=scope), scope["method"])
            if error is not None:
                if kind == "page" and isinstance(error, Unauthorized) and scope["method"] in SAFE_METHODS:
                    await RedirectResponse("/login", 303)(scope, receive, send)
                else:
                    await render(error, scope.get("benchyard.request_id", ""))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers, method: str) -> ServiceError | None:
        authorization = headers.get("authorization")
        if authorization is not None:
            scheme, _, given = authorization.partition(" ")
            if scheme.lower() == "bearer" and self._authority.is_token(given.strip()):
                return None
            return Unauthorized("The token is not the right one; it is in the file `token` of the data directory.")
        cookie = _cookie(headers.get("cookie"))
        if cookie is None or not self._authority.is_session(cookie):
            return Unauthorized(
                "A token is needed: send `Authorization: Bearer <token>`; it is in the file `token` of the data directory."
            )
        if method not in SAFE_METHODS and not _same_origin(headers):
            return Forbidden("This request came from another site's page; use the dashboard, or a bearer token.")
        return None


def _cookie(header: str | None) -> str | None:
    if not header:
        return None
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return found.value if found else None


def _same_origin(headers: Headers) -> bool:
    if headers.get("sec-fetch-site") == "same-origin":
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == headers.get("host")
