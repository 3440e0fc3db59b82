"""Pages for signing in and out, and the API reference."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, Query, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from orchestrator.dashboard.reference import endpoints
from orchestrator.dashboard.shell import bare, draw, page_router
from orchestrator.errors import RateLimited
from orchestrator.http.access.authentication import COOKIE, drop_cookie, put_cookie
from orchestrator.http.access.identity import SESSION_S
from orchestrator.http.access.login_throttle import LoginThrottle, names_of
from orchestrator.http.audit_trail import note
from orchestrator.http.context import Context, Services, base_url, caller_of
from orchestrator.http.policy import ANYONE, READ, Body, Policy
from orchestrator.sign_in.service import ATTEMPT_LASTS, SignInFailed
from orchestrator.system.identifiers import new_token

router = page_router()

BROWSER_COOKIE = "benchyard_sign_in"
ATTEMPT_S = int(ATTEMPT_LASTS.total_seconds())
NO_PROVIDER = "No identity provider is configured. Sign in with a token."
WRONG = "Wrong, revoked or expired token."
_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")
"""A path of this site: without host, backslash or control characters, which browsers drop before they look for a host."""


def _delay(request: Request) -> LoginThrottle:
    throttle: LoginThrottle = request.app.state.login_throttle
    return throttle


Delay = Annotated[LoginThrottle, Depends(_delay)]
Next = Annotated[str, Query(max_length=4000)]


def page_after_login(address: str, root: str) -> str:
    """The page to show after signing in: always one of ours, whatever was given."""
    path = urlsplit(address).path if _PATH.fullmatch(address) else ""
    inside = path.removeprefix(root) if path == root or path.startswith(f"{root}/") else path
    if not path or "//" in path or inside.rstrip("/") in ("/login", "/logout"):
        return f"{root}/"
    return address if inside != path or not root else f"{root}{address}"


def from_elsewhere(request: Request, public_url: str | None) -> bool:
    """Whether a page of another site made the browser send this; a typed or pasted URL does not count."""
    if (site := request.headers.get("sec-fetch-site")) is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")
    if origin is None:
        return False
    hosts = (request.headers.get("host"), urlsplit(public_url or "").netloc)
    return not urlsplit(origin).netloc or urlsplit(origin).netloc not in hosts


@router.get("/login", policy=Policy(ANYONE))
async def login_page(
    request: Request,
    context: Context,
    throttle: Delay,
    token: Annotated[str | None, Query(max_length=200)] = None,
    next: Next = "",
) -> Response:
    if token is None:
        return _form(request, 200, None, next)
    cookie = request.cookies.get(COOKIE)
    present = await context.authority.by_session(cookie) if cookie else None
    if present is not None:
        caller = await context.authority.by_token(token)
        if caller is not None and (caller.token_id, caller.user_id) == (present.token_id, present.user_id):
            return RedirectResponse(page_after_login(next, context.settings.root), 303)
    if present is not None or from_elsewhere(request, context.settings.public_url):
        # A page of another site could have led here, to make somebody work in an account that is not theirs.
        name = present.name if present is not None else None
        return draw("sign_in/confirm_sign_in.html", 200, **bare(request), token=token, wanted=next, present=name)
    return await _sign_in(request, context, throttle, token, next)


@router.post("/login", policy=Policy(ANYONE, body=Body.SMALL))
async def login(request: Request, context: Context, throttle: Delay) -> Response:
    if from_elsewhere(request, context.settings.public_url):
        return _form(request, 403, "The request came from another site. Sign in here.", "")
    form = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=10)
    token, next_page = (form.get(name, [""])[0].strip() for name in ("token", "next"))
    return await _sign_in(request, context, throttle, token, next_page)


@router.get("/login/provider", policy=Policy(ANYONE))
async def to_provider(request: Request, context: Context, next: Next = "") -> Response:
    """Redirects to the identity provider."""
    sign_in = context.accounts.sign_in
    if sign_in is None:
        return _form(request, 404, NO_PROVIDER, next)
    browser = request.cookies.get(BROWSER_COOKIE) or new_token()
    try:
        address = await sign_in.leave(browser, next, _callback(request, context))
    except SignInFailed as error:
        return _form(request, error.status, str(error), next)
    response = RedirectResponse(address, 303)
    put_cookie(response, request, context.settings, BROWSER_COOKIE, browser, ATTEMPT_S, "/login")
    return response


@router.get("/login/callback", policy=Policy(ANYONE))
async def from_provider(request: Request, context: Context) -> Response:
    """Handles the return from the identity provider."""
    sign_in = context.accounts.sign_in
    if sign_in is None:
        return _form(request, 404, NO_PROVIDER, "")
    browser = request.cookies.get(BROWSER_COOKIE)
    try:
        arrived = await sign_in.arrive(dict(request.query_params), browser, _callback(request, context))
    except SignInFailed as error:
        note(request.scope, action="sign-in")
        return _form(request, error.status, str(error), "")
    cookie = await context.accounts.sessions.begin(
        arrived.user,
        arrived.granted,
        agent=request.headers.get("user-agent", ""),
        address=request.client.host if request.client else "",
    )
    note(request.scope, action="sign-in", actor=await context.authority.by_session(cookie))
    response = RedirectResponse(page_after_login(arrived.wanted, context.settings.root), 303)
    put_cookie(response, request, context.settings, COOKIE, cookie, int(context.settings.session_max_s))
    return response


@router.post("/logout", policy=Policy(READ, needs_workspace=False))
async def logout(request: Request, context: Context) -> Response:
    """Signs out here and, if supported, at the identity provider."""
    session_id, elsewhere = caller_of(request).session_id, None
    login = f"{context.settings.root}/login"
    if session_id is None and (cookie := request.cookies.get(COOKIE)):
        await context.authority.end_session(cookie)
    if session_id is not None:
        id_token = await context.accounts.sessions.id_token(session_id)
        await context.accounts.sessions.end(session_id)
        if (sign_in := context.accounts.sign_in) is not None:
            elsewhere = await sign_in.sign_out_address(id_token, f"{base_url(context, request)}/login")
    response: Response = RedirectResponse(login, 303)
    if elsewhere is not None:
        # A form may not lead to another site, not even through a redirect; a link on a page may.
        response = draw("sign_in/signed_out.html", 200, **bare(request), elsewhere=elsewhere)
        response.headers["refresh"] = f"0;url={elsewhere}"
    drop_cookie(response, context.settings, COOKIE)
    return response


@router.get("/docs", policy=Policy(ANYONE))
async def reference(request: Request) -> Response:
    entries = endpoints(request.app.openapi())
    return draw("shell/docs.html", 200, **{**bare(request), "path": "/docs"}, endpoints=entries)


def _callback(request: Request, context: Services) -> str:
    return f"{base_url(context, request)}/login/callback"


def _form(request: Request, status: int, error: str | None, next_page: str) -> Response:
    services: Services | None = getattr(request.app.state, "services", None)
    provider = services.accounts.provider if services else None
    issuer = urlsplit(provider.client.issuer).hostname if provider else None
    return draw("sign_in/login.html", status, **bare(request), error=error, wanted=next_page, issuer=issuer)


async def _sign_in(request: Request, context: Context, throttle: LoginThrottle, token: str, next_page: str) -> Response:
    names = names_of(request.client.host if request.client else "", token)
    try:
        await asyncio.sleep(max(throttle.wait_s(name, context.clock.monotonic()) for name in names))
    except RateLimited as error:
        note(request.scope, action="sign-in")
        response = _form(request, error.status, error.detail, next_page)
        response.headers.update(error.headers)
        return response
    caller = await context.authority.by_token(token)
    note(request.scope, action="sign-in", actor=caller)
    if caller is None:
        for name in names:
            throttle.wrong(name, context.clock.monotonic())
        return _form(request, 401, WRONG, next_page)
    for name in names:
        throttle.right(name)
    response = RedirectResponse(page_after_login(next_page, context.settings.root), 303)
    put_cookie(response, request, context.settings, COOKIE, await context.authority.session_for(caller), SESSION_S)
    return response
