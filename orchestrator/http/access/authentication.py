"""Authentication and authorisation: a bearer token for programs, a cookie for pages. Runs before any parsing."""

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
from orchestrator.http.access.identity import NOWHERE, Authority, Caller
from orchestrator.http.access.rate_limits import RateLimits
from orchestrator.http.policy import MATCH, Policy
from orchestrator.http.problems import render
from orchestrator.http.route_table import RouteMatch
from orchestrator.scopes import SAFE_METHODS
from orchestrator.scopes import Scope as Need
from orchestrator.settings import Settings
from orchestrator.startup import BadConfiguration
from orchestrator.system.identifiers import new_token

COOKIE = "benchyard_session"
WORKSPACE_HEADER = "x-benchyard-workspace"
TOKEN_FILE = "token"  # noqa: S105
MAX_TOKEN = 200
WHERE = "it is in the file `token` of the data directory"

PageError = Callable[[Scope, ServiceError], Response]
"""Renders an error as a page, if a page was requested."""


def load_token(configured: str | None, data_dir: Path) -> tuple[str, bool]:
    """The API token, and whether it was just created. Stored in the data directory, readable only by its owner."""
    if configured:
        return configured, False
    path = data_dir / TOKEN_FILE
    try:
        if path.exists() and (content := path.read_bytes().strip()):
            return _as_token(content, path), False
        token = new_token()
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(token + "\n")
    except OSError as error:
        raise BadConfiguration(f"The token in {path} cannot be read or written: {error.strerror}.") from error
    return token, True


def _as_token(content: bytes, path: Path) -> str:
    """The file's content, if it can be sent in a header."""
    if len(content) > MAX_TOKEN or not re.fullmatch(rb"[\x20-\x7e]+", content):
        raise BadConfiguration(
            f"The file {path} does not hold a token (one line of letters, digits and signs, at most {MAX_TOKEN}). "
            "Put the right one back, or delete the file: the next start makes a new token."
        )
    return content.decode("ascii")


class Gate:
    """Admits only known callers who may do what the route's policy requires, and sets their workspace."""

    def __init__(
        self, app: ASGIApp, *, authority: Authority, settings: Settings, page_error: PageError, rate_limits: RateLimits
    ) -> None:
        self._app = app
        self._authority = authority
        self._settings = settings
        self._public = urlsplit(settings.public_url or "")  # where people open the service, if behind a proxy
        self._page_error = page_error
        self._rate_limits = rate_limits

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
        if caller.new_cookie is not None:
            response = Response()
            max_age_s = int(self._settings.session_max_s)
            put_cookie(response, HTTPConnection(scope), self._settings, COOKIE, caller.new_cookie, max_age_s)
            send = _with_cookie(send, response.headers["set-cookie"].encode("latin-1"))
        with acting_as(caller.acting):
            await self._app(scope, receive, send)

    def _refuse(self, error: ServiceError, scope: Scope, *, for_people: bool) -> Response:
        if for_people and isinstance(error, Unauthorized) and scope["method"] in SAFE_METHODS:
            query = scope["query_string"].decode("latin-1")
            address = scope["path"] + (f"?{query}" if query else "")
            tail = f"?{urlencode({'next': address})}" if address != "/" else ""
            return RedirectResponse(f"{self._settings.root}/login{tail}", 303)
        if for_people and "text/html" in Headers(scope=scope).get("accept", ""):
            return self._page_error(scope, error)
        return render(error, scope.get("benchyard.request_id", ""))

    async def _admit(self, scope: Scope, policy: Policy, needed: Need, *, rotate: bool) -> Caller:
        try:
            caller = await self._identify(Headers(scope=scope), scope["method"], rotate=rotate)
            scope["benchyard.caller"] = caller
            await self._rate_limits.check(caller, spends=policy.spends)
        except DatabaseUnavailable as error:
            raise Unavailable(f"The database cannot be used now ({error}); try again shortly.") from error
        if not caller.scope.allows(needed):
            subject = f"The token {caller.name!r}" if caller.session_id is None else caller.name
            owner = "an owner of the installation, since all workspaces share it"
            requirement = owner if needed is Need.OWNER else f"a token of scope {needed}"
            raise Forbidden(f"{subject} has the scope {caller.scope}; this needs {requirement}.")
        if caller.workspace_id == NOWHERE and policy.needs_workspace:
            raise Forbidden("You are signed in, but in no workspace yet. Ask an administrator to add you; see /account.")
        return replace(caller, everywhere=True) if needed is Need.AGENT else caller

    async def _identify(self, headers: Headers, method: str, *, rotate: bool) -> Caller:
        authorization = headers.get("authorization")
        workspace = headers.get(WORKSPACE_HEADER)
        if authorization is not None:
            scheme, _, credentials = authorization.partition(" ")
            caller = await self._authority.by_token(credentials.strip(), workspace) if scheme.lower() == "bearer" else None
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
        # Behind a proxy, the service may see a different host name than people use.
        return bool(origin.netloc) and origin.netloc in (headers.get("host"), self._public.netloc)


def _with_cookie(send: Send, line: bytes) -> Send:
    async def send_with_cookie(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), (b"set-cookie", line)]}
        await send(message)

    return send_with_cookie


def put_cookie(
    response: Response,
    connection: HTTPConnection,
    settings: Settings,
    name: str,
    value: str,
    max_age_s: int,
    path: str = "/",
) -> None:
    """Set a cookie: not readable by scripts, not sent with other sites' requests, over TLS only if there is TLS."""
    # Lax, so that a link in a message opens its page; changes must come from our own pages in any case.
    response.set_cookie(
        name,
        value,
        max_age=max_age_s,
        path=_path(settings, path),
        httponly=True,
        samesite="lax",
        secure=_over_https(connection, settings),
    )


def drop_cookie(response: Response, settings: Settings, name: str, path: str = "/") -> None:
    response.delete_cookie(name, path=_path(settings, path))


def _path(settings: Settings, path: str) -> str:
    return f"{settings.root}{path}".rstrip("/") or "/"


def _over_https(connection: HTTPConnection, settings: Settings) -> bool:
    """Whether the browser uses HTTPS; a proxy in between may use plain HTTP to reach us."""
    public = urlsplit(settings.public_url or "")
    at_public = connection.headers.get("host") == public.netloc and public.scheme == "https"
    scheme = connection.headers.get("origin") or connection.headers.get("x-forwarded-proto") or connection.url.scheme
    return at_public or scheme.startswith("https")
