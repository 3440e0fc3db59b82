"""Sign in and out, and the API reference."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, Query, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from orchestrator.api.audit_trail import note
from orchestrator.api.auth import COOKIE
from orchestrator.api.callers import SESSION_S
from orchestrator.api.context import Context
from orchestrator.api.guessing import GuessDelay
from orchestrator.dashboard.frame import bare, draw, page_router
from orchestrator.dashboard.reference import endpoints
from orchestrator.errors import RateLimited
from orchestrator.settings import Settings

router = page_router()

WRONG = "That token is wrong, was revoked or has expired."
_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")
"""A path of this site: no host, no backslash and no control character, which browsers drop before they look for a host."""


def _delay(request: Request) -> GuessDelay:
    delay: GuessDelay = request.app.state.guess_delay
    return delay


Delay = Annotated[GuessDelay, Depends(_delay)]
Next = Annotated[str, Query(max_length=4000)]


def wanted_page(given: str, root: str) -> str:
    """Where to go after signing in: a page of ours, whatever was given."""
    path = urlsplit(given).path if _PATH.fullmatch(given) else ""
    inside = path.removeprefix(root) if path == root or path.startswith(f"{root}/") else path
    if not path or "//" in path or inside.rstrip("/") in ("/login", "/logout"):
        return f"{root}/"
    return given if inside != path or not root else f"{root}{given}"


@router.get("/login")
async def login_page(
    request: Request,
    context: Context,
    delay: Delay,
    token: Annotated[str | None, Query(max_length=200)] = None,
    next: Next = "",
) -> Response:
    return _form(request, 200, None, next) if token is None else await _sign_in(request, context, delay, token, next)


@router.post("/login")
async def login(request: Request, context: Context, delay: Delay) -> Response:
    form = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=10)
    token, wanted = (form.get(name, [""])[0].strip() for name in ("token", "next"))
    return await _sign_in(request, context, delay, token, wanted)


@router.post("/logout")
async def logout(context: Context) -> Response:
    response = RedirectResponse(f"{context.settings.root}/login", 303)
    response.delete_cookie(COOKIE, path=context.settings.root or "/")
    return response


@router.get("/docs")
async def reference(request: Request) -> Response:
    found = endpoints(request.app.openapi())
    return draw("docs.html", 200, **{**bare(request), "path": "/docs"}, endpoints=found)


def _form(request: Request, status: int, error: str | None, wanted: str) -> Response:
    return draw("login.html", status, **bare(request), error=error, wanted=wanted)


async def _sign_in(request: Request, context: Context, delay: GuessDelay, token: str, wanted: str) -> Response:
    address = request.client.host if request.client else ""
    try:
        await asyncio.sleep(delay.wait_s(address, context.clock.monotonic()))
    except RateLimited as error:
        note(request.scope, action="sign-in")
        response = _form(request, error.status, error.detail, wanted)
        response.headers.update(error.headers)
        return response
    caller = await context.authority.by_token(token)
    note(request.scope, action="sign-in", actor=caller)
    if caller is None:
        delay.wrong(address, context.clock.monotonic())
        return _form(request, 401, WRONG, wanted)
    delay.right(address)
    root = context.settings.root
    response = RedirectResponse(wanted_page(wanted, root), 303)
    # Lax, so that a link in a message opens its page; changes need a request of our own pages in any case.
    response.set_cookie(
        COOKIE,
        await context.authority.session_for(caller),
        max_age=SESSION_S,
        path=root or "/",
        httponly=True,
        samesite="lax",
        secure=_over_https(request, context.settings),
    )
    return response


def _over_https(request: Request, settings: Settings) -> bool:
    """As the browser sees it; a proxy in between may speak plain HTTP to us."""
    public = urlsplit(settings.public_url or "")
    at_public = request.headers.get("host") == public.netloc and public.scheme == "https"
    said = request.headers.get("origin") or request.headers.get("x-forwarded-proto") or request.url.scheme
    return at_public or said.startswith("https")
