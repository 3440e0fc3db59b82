"""Sign in and out, and the API reference."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Query, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from orchestrator.api.auth import COOKIE, Authority
from orchestrator.dashboard.frame import draw, page_router, root_of
from orchestrator.dashboard.reference import endpoints

router = page_router()

WRONG = "That is not the token. It is in the file “token” of the data directory."


@router.get("/login")
async def login_page(request: Request, token: Annotated[str | None, Query(max_length=200)] = None) -> Response:
    return _form(request, 200, None) if token is None else _sign_in(request, token)


@router.post("/login")
async def login(request: Request) -> Response:
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    return _sign_in(request, form.get("token", [""])[0].strip())


@router.post("/logout")
async def logout(request: Request) -> Response:
    response = RedirectResponse(f"{_root(request)}/login", 303)
    response.delete_cookie(COOKIE)
    return response


@router.get("/docs")
async def reference(request: Request) -> Response:
    found = endpoints(request.app.openapi())
    return draw("docs.html", 200, root=_root(request), path="/docs", number=None, endpoints=found)


def _root(request: Request) -> str:
    return root_of(request.app.state.services.settings.public_url)


def _form(request: Request, status: int, error: str | None) -> Response:
    return draw("login.html", status, root=_root(request), path=None, number=None, error=error)


def _sign_in(request: Request, token: str) -> Response:
    authority: Authority = request.app.state.authority
    if not authority.is_token(token):
        return _form(request, 401, WRONG)
    response = RedirectResponse(f"{_root(request)}/", 303)
    # Lax, so that a link in a message opens its page; changes need a request of our own pages in any case.
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, authority.session, max_age=30 * 24 * 3600, httponly=True, samesite="lax", secure=secure)
    return response
