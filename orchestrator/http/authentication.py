"""Who may call what: a bearer token for programs, a cookie for pages. An ASGI layer: it comes before any parsing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.db.session import DatabaseUnavailable
from orchestrator.db.workspaces import acting_as
from orchestrator.errors import Forbidden, ServiceError, Unauthorized, Unavailable
from orchestrator.http.callers import NOWHERE, Authority, Caller
from orchestrator.http.policy import MATCH, Policy
from orchestrator.http.problems import render
from orchestrator.http.rate_limits import Pace
from orchestrator.http.route_table import RouteMatch
from orchestrator.scopes import SAFE_METHODS
from orchestrator.scopes import Scope as Need
from orchestrator.startup import BadConfiguration
from orchestrator.system.identifiers import new_token

COOKIE = "benchyard_session"
WORKSPACE_HEADER = "x-benchyard-workspace"
TOKEN_FILE = "token"  # noqa: S105
MAX_TOKEN = 200
WHERE = "it is in the file `token` of the data directory"

PageError = Callable[[Scope, ServiceError], Response]
"""An error as people see it, where a page was asked for."""


def load_token(configured: str | None, data_dir: Path) -> tuple[str, bool]:
    """The API token, and whether it was made just now. Kept in the data directory, readable by its owner only."""
    if configured:
        return configured, False
    path = data_dir / TOKEN_FILE
    try:
        if path.exists() and (kept := path.read_bytes().strip()):
            return _as_token(kept, path), False
        token = new_token()
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(token + "\n")
    except OSError as error:
        raise BadConfiguration(f"The token in {path} cannot be read or written: {error.strerror}.") from error
    return token, True


def _as_token(kept: bytes, path: Path) -> str:
    """What the file holds, if a header could carry it."""
    if len(kept) > MAX_TOKEN or not re.fullmatch(rb"[\x20-\x7e]+", kept):
        raise BadConfiguration(
            f"The file {path} does not hold a token (one line of letters, digits and signs, at most {MAX_TOKEN}). "
            "Put the right one back, or delete the file: the next start makes a new token."
        )
    return kept.decode("ascii")


class Gate:
    """Lets through only callers who are known and may do what the route's policy asks for. `public_url` is where people open
    the service, if behind a proxy; `cookie` writes the line for a session whose secret was changed."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authority: Authority,
        public_url: str | None,
        page_error: PageError,
        pace: Pace,
        cookie: Callable[[HTTPConnection, str], bytes],
    ) -> None:
        self._app = app
        self._authority = authority
        self._public = urlsplit(public_url or "")
        self._page_error = page_error
        self._pace = pace
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match: RouteMatch | None = scope.get(MATCH)
        if match is None or (needed := match.policy.scope) is None:
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._admit(scope, match.policy, needed, rotate=match.for_people)
        except ServiceError as error:
            await self._refuse(error, scope, for_people=match.for_people)(scope, receive, send)
            return
        fresh = None if caller.new_cookie is None else self._cookie(HTTPConnection(scope), caller.new_cookie)
        with acting_as(caller.acting):
            await self._app(scope, receive, send if fresh is None else _with_cookie(send, fresh))

    def _refuse(self, error: ServiceError, scope: Scope, *, for_people: bool) -> Response:
        if for_people and isinstance(error, Unauthorized) and scope["method"] in SAFE_METHODS:
            query = scope["query_string"].decode("latin-1")
            wanted = scope["path"] + (f"?{query}" if query else "")
            tail = f"?{urlencode({'next': wanted})}" if wanted != "/" else ""
            return RedirectResponse(f"{self._public.path.rstrip('/')}/login{tail}", 303)
        if for_people and "text/html" in Headers(scope=scope).get("accept", ""):
            return self._page_error(scope, error)
        return render(error, scope.get("benchyard.request_id", ""))

    async def _admit(self, scope: Scope, policy: Policy, needed: Need, *, rotate: bool) -> Caller:
        try:
            caller = await self._known(Headers(scope=scope), scope["method"], rotate=rotate)
            scope["benchyard.caller"] = caller
            await self._pace.check(caller, spends=policy.spends)
        except DatabaseUnavailable as error:
            raise Unavailable(f"The database cannot be used now ({error}); try again shortly.") from error
        if not caller.scope.allows(needed):
            raise Forbidden(f"{_who(caller)} has the scope {caller.scope}; this needs {_what(needed)}.")
        if caller.workspace_id == NOWHERE and policy.needs_workspace:
            raise Forbidden("You are signed in, but in no workspace yet. Ask an administrator to add you; see /account.")
        return replace(caller, everywhere=True) if needed is Need.AGENT else caller

    async def _known(self, headers: Headers, method: str, *, rotate: bool) -> Caller:
        authorization = headers.get("authorization")
        workspace = headers.get(WORKSPACE_HEADER)
        if authorization is not None:
            scheme, _, given = authorization.partition(" ")
            caller = await self._authority.by_token(given.strip(), workspace) if scheme.lower() == "bearer" else None
            if caller is None:
                raise Unauthorized(f"The token is wrong, was revoked or has expired; the installation's own: {WHERE}.")
            return caller
        cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE)
        caller = await self._authority.by_session(cookie, workspace, rotate=rotate) if cookie else None
        if caller is None:
            raise Unauthorized(f"A token is needed: send `Authorization: Bearer <token>`; {WHERE}.")
        if method not in SAFE_METHODS and not self._same_origin(headers):
            raise Forbidden("This request came from another site's page; use the dashboard, or a bearer token.")
        return caller

    def _same_origin(self, headers: Headers) -> bool:
        if (site := headers.get("sec-fetch-site")) is not None:
            return site == "same-origin"
        origin = urlsplit(headers.get("origin") or "")
        # A proxy may give the service another name than people use.
        return bool(origin.netloc) and origin.netloc in (headers.get("host"), self._public.netloc)


def _with_cookie(send: Send, line: bytes) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), (b"set-cookie", line)]}
        await send(message)

    return told


def _who(caller: Caller) -> str:
    return f"The token {caller.name!r}" if caller.session_id is None else caller.name


def _what(needed: Need) -> str:
    if needed is Need.OWNER:
        return "an owner of the installation, since all workspaces share it"
    return f"a token of scope {needed}"
