"""Sign-in at well-known paths: login, status, logout. The pages at /login do the work."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from pydantic import Field
from starlette.responses import RedirectResponse, Response

from orchestrator.accounts import queries as account_queries
from orchestrator.accounts.tables import User
from orchestrator.db.workspaces import acting_as
from orchestrator.errors import Conflict, Forbidden, NotFound, Unauthorized, Unavailable
from orchestrator.http.access.authentication import COOKIE, drop_cookie
from orchestrator.http.access.identity import Caller
from orchestrator.http.context import Context, Services, base_url, caller_of
from orchestrator.http.policy import ANYONE, READ, Policy, Router
from orchestrator.http.schemas import Answer, Body
from orchestrator.scopes import Role, Scope
from orchestrator.sign_in.claims import InvalidIdToken
from orchestrator.sign_in.oidc import ProviderTrouble, Refused
from orchestrator.sign_in.service import SignInFailed
from orchestrator.system.identifiers import new_token
from orchestrator.tokens.routes import make_token
from orchestrator.tokens.schemas import TokenCreate

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
    """Redirect to the identity provider, or without one to the page that takes a token."""
    path = "/login" if context.accounts.sign_in is None else "/login/provider"
    return RedirectResponse(f"{context.settings.root}{path}", 303)


@router.get("/status", policy=Policy(ANYONE))
async def auth_status(request: Request, context: Context) -> AuthStatus:
    """Open to everybody: without a sign-in the answer is `authenticated: false` with status 200."""
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
    """End the browser's session, also at the identity provider if supported. Tokens stay valid."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Forbidden("This request came from another site's page; sign out on a page of this service.")
    session_id, elsewhere = caller_of(request).session_id, None
    if session_id is not None:
        id_token = await context.accounts.sessions.id_token(session_id)
        await context.accounts.sessions.end(session_id)
        if (sign_in := context.accounts.sign_in) is not None:
            elsewhere = await sign_in.sign_out_address(id_token, f"{base_url(context, request)}/login")
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
    except NotFound:  # their workspace no longer exists
        return None


command_lines = Router(prefix="/login", tags=["accounts"])

DAYS = 30
WAITING = ("authorization_pending", "slow_down")
Secret = Annotated[str, Field(min_length=20, max_length=200)]
Device = Annotated[str, Field(max_length=60)]


class CodeGiven(Body):
    code: Secret
    verifier: Secret


class TokenGiven(Answer):
    token: str


class DeviceAsked(Body):
    device: Device = "here"


class DeviceBegun(Answer):
    handle: str
    user_code: str
    address: str
    whole_address: str | None
    interval_s: int
    expires_s: int


class DevicePolled(Body):
    handle: Secret
    device: Device = "here"


class DeviceState(Answer):
    """Has `token` once the person has agreed; until then, poll again after the interval."""

    token: str | None = None
    slower: bool = False


@command_lines.post("/command-line", policy=Policy(ANYONE))
async def exchange_code(body: CodeGiven, context: Context) -> TokenGiven:
    """Exchange the code that a browser brought to a waiting command line for its token; works once."""
    token = context.accounts.command_lines.redeem(body.code, body.verifier)
    if token is None:
        raise Unauthorized("This code was used already, is too old, or was made for another command line; sign in again.")
    return TokenGiven(token=token)


@command_lines.post("/device", policy=Policy(ANYONE))
async def begin_device(body: DeviceAsked, context: Context) -> DeviceBegun:
    """Start a sign-in with a code that is typed in elsewhere. 404 if the identity provider does not support it."""
    provider = context.accounts.provider
    try:
        device = await provider.ask_device() if provider else None
    except (ProviderTrouble, Refused) as error:
        raise Unavailable(f"The identity provider cannot be used now: {error}.") from error
    if device is None:
        raise NotFound("there is no identity provider here that offers device codes; sign in with a browser or a token")
    handle = context.accounts.command_lines.wait_for(device.device_code)
    return DeviceBegun(
        handle=handle,
        user_code=device.user_code,
        address=device.address,
        whole_address=device.whole_address,
        interval_s=device.interval_s,
        expires_s=device.expires_s,
    )


@command_lines.post("/device/poll", policy=Policy(ANYONE))
async def poll_device(body: DevicePolled, request: Request, context: Context) -> DeviceState:
    """Whether the person has agreed; then returns a token for them that is valid for 30 days."""
    provider, sign_in = context.accounts.provider, context.accounts.sign_in
    device_code = context.accounts.command_lines.device(body.handle)
    if provider is None or sign_in is None or device_code is None:
        raise NotFound("no sign-in waits for this handle (any more); sign in again")
    try:
        granted = await provider.redeem_device(device_code)
        user = await sign_in.known(granted.identity)
    except Refused as error:
        if error.code in WAITING:
            return DeviceState(slower=error.code == "slow_down")
        context.accounts.command_lines.done(body.handle)
        raise Forbidden(f"The identity provider refused: {error}. Sign in again.") from error
    except (InvalidIdToken, SignInFailed) as error:
        raise Forbidden(f"You were not signed in: {error}") from error
    except ProviderTrouble as error:
        raise Unavailable(f"The identity provider cannot be used now: {error}.") from error
    context.accounts.command_lines.done(body.handle)
    return DeviceState(token=await _token_for(user, body.device, request, context))


async def _token_for(user: User, device: str, request: Request, context: Services) -> str:
    user_id = user.id or 0
    workspaces = await context.db.read(lambda s: account_queries.workspaces_of(s, user_id))
    if not workspaces and not user.owner:
        raise Conflict("You have an account here, but are in no workspace yet; ask an administrator to add you.")
    role = Role.OWNER if user.owner else Role(workspaces[0].role)
    caller = Caller(user.name, role.scope, role=role, user_id=user_id)
    if workspaces:
        caller = Caller(
            user.name, role.scope, role=role, user_id=user_id, workspace_id=workspaces[0].id, workspace=workspaces[0].slug
        )
    scope = Scope.ADMIN if role is Role.OWNER else role.scope
    name = f"command line {device[:40]} {new_token()[:6]}"
    with acting_as(caller.acting):
        body = TokenCreate(name=name, scope=scope, expires_in_days=DAYS)
        return (await make_token(body, caller, request, context)).token
