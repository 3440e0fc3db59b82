"""Sign-in at the paths that other programs know: login, status, logout. The pages at /login do the work."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from orchestrator.alerts.share_routes import base_url
from orchestrator.errors import Forbidden, NotFound
from orchestrator.http.authentication import COOKIE, drop_cookie
from orchestrator.http.context import Context, Services, caller_of
from orchestrator.http.identity import Caller
from orchestrator.http.policy import ANYONE, READ, Policy, Router
from orchestrator.http.schemas import Answer
from orchestrator.scopes import Role, Scope
from orchestrator.sign_in.oidc import ProviderTrouble

router = Router(prefix="/api/auth", tags=["accounts"])


class AuthStatus(Answer):
    """Whether the caller is signed in, and as whom."""

    authenticated: bool
    name: str | None = None
    role: Role | None = None
    scope: Scope | None = None
    workspace: str | None = None
    identity_provider: bool


@router.get("/login", policy=Policy(ANYONE), status_code=303, response_class=RedirectResponse)
async def auth_login(context: Context) -> Response:
    """To the identity provider if there is one, else to the page that takes a token."""
    path = "/login" if context.accounts.sign_in is None else "/login/provider"
    return RedirectResponse(f"{context.settings.root}{path}", 303)


@router.get("/status", policy=Policy(ANYONE))
async def auth_status(request: Request, context: Context) -> AuthStatus:
    """For everybody: a stranger is told `authenticated: false`, with status 200."""
    caller = await _caller(request, context)
    provider = context.accounts.sign_in is not None
    if caller is None:
        return AuthStatus(authenticated=False, identity_provider=provider)
    return AuthStatus(
        authenticated=True,
        name=caller.name,
        role=caller.role,
        scope=caller.scope,
        workspace=caller.workspace,
        identity_provider=provider,
    )


@router.get("/logout", policy=Policy(READ, needs_workspace=False), status_code=303, response_class=RedirectResponse)
async def auth_logout(request: Request, context: Context) -> Response:
    """End the browser's session, also at the identity provider where it offers that. A token is not ended by it."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Forbidden("This request came from another site's page; sign out on a page of this service.")
    session_id, elsewhere = caller_of(request).session_id, None
    if session_id is not None:
        id_token = await context.accounts.sessions.id_token(session_id)
        await context.accounts.sessions.end(session_id)
        elsewhere = await sign_out_address(request, context, id_token)
    response = RedirectResponse(elsewhere or f"{context.settings.root}/login", 303)
    drop_cookie(response, context.settings, COOKIE)
    return response


async def _caller(request: Request, context: Services) -> Caller | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    try:
        if scheme:
            return await context.authority.by_token(token.strip()) if scheme.lower() == "bearer" else None
        cookie = request.cookies.get(COOKIE)
        return await context.authority.by_session(cookie) if cookie else None
    except NotFound:  # their workspace is gone
        return None


async def sign_out_address(request: Request, context: Services, id_token: str | None) -> str | None:
    """Where the identity provider ends its own session, if there is one and it says so."""
    if context.accounts.provider is None:
        return None
    try:
        return await context.accounts.provider.sign_out_address(id_token, f"{base_url(context, request)}/login")
    except ProviderTrouble:
        return None  # signed out here in any case
