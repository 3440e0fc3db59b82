"""Account pages: my sessions, my tokens, the workspace that pages show, and command lines that request a token."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.accounts import queries as account_queries
from orchestrator.accounts.schemas import (
    AccountOut,
    MemberAdd,
    MemberOut,
    SessionOut,
    UserOut,
    WorkspaceChange,
    WorkspaceCreate,
)
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.db.session import DuplicateKey
from orchestrator.errors import ClientError, Invalid, NotFound, RateLimited
from orchestrator.http.access.authentication import COOKIE, drop_cookie, put_cookie
from orchestrator.http.access.identity import SESSION_S
from orchestrator.http.access.login_throttle import LoginThrottle
from orchestrator.http.context import caller_of, user_of
from orchestrator.http.policy import ADMIN, OWNER, READ, Policy
from orchestrator.scopes import Role, Scope
from orchestrator.sign_in.pages import page_after_login
from orchestrator.system.identifiers import new_token
from orchestrator.tokens.pages import LIFETIMES, SCOPES, Secret, make_token, token_request
from orchestrator.tokens.schemas import TokenCreate, TokenOut

router = page_router()

Id = Annotated[int, Path(ge=0, le=2**31 - 1)]
Port = Annotated[int, Query(ge=1, le=65535)]
Word = Annotated[str, Query(min_length=20, max_length=100, pattern=r"^[A-Za-z0-9_-]+$")]
CLI_DAYS = 30


@router.get("/account", policy=Policy(READ, needs_workspace=False))
async def account_page(page: Page) -> Response:
    return await _view(page)


@router.post("/account/workspace", policy=Policy(READ, needs_workspace=False))
async def choose_workspace(page: Page) -> Response:
    """Sets the workspace that pages show from now on."""
    form = await page.form()
    slug = form.get("slug", [""])[0]
    caller = caller_of(page.request)
    workspaces = (
        await page.context.accounts.members.workspaces_of(caller.user_id, caller.role) if not caller.token_id else []
    )
    workspace = next((access for access in workspaces if access.slug == slug), None)
    if workspace is None:
        raise NotFound(f"You have no workspace {slug[:60]!r}.")
    response = page.go("/")
    response.headers["location"] = page_after_login(form.get("next", [""])[0], page.root)
    if caller.session_id is not None:
        await page.context.accounts.sessions.go_to(caller.session_id, workspace.id)
    else:
        moved = replace(caller, workspace_id=workspace.id, workspace=workspace.slug)
        cookie = await page.context.authority.session_for(moved)
        put_cookie(response, page.request, page.context.settings, COOKIE, cookie, SESSION_S)
    return response


@router.post("/account/owner", policy=Policy(READ, needs_workspace=False))
async def become_owner(page: Page) -> Response:
    """Makes the caller an owner; requires the installation's token."""
    caller = caller_of(page.request)
    delay: LoginThrottle = page.request.app.state.login_throttle
    address = page.request.client.host if page.request.client else ""
    if caller.user_id is None:
        return await _view(page, 409, error="Sign in with an account, not with a token.")
    try:
        await asyncio.sleep(delay.wait_s(address, page.context.clock.monotonic()))
    except RateLimited as error:
        return await _view(page, error.status, error=error.detail)
    owner = await page.context.authority.by_token((await page.form()).get("token", [""])[0])
    if owner is None or owner.token_id or owner.role is not Role.OWNER:
        delay.wrong(address, page.context.clock.monotonic())
        return await _view(page, 422, error="That is not the installation's token.")
    delay.right(address)
    await page.context.accounts.members.change_user(caller.user_id, owner=True)
    return page.go("/account")


@router.post("/account/sessions/end", policy=Policy(READ, needs_workspace=False))
async def end_everywhere(page: Page) -> Response:
    await page.context.accounts.sessions.end_all(user_of(page.request)[1])
    response = page.go("/login")
    drop_cookie(response, page.context.settings, COOKIE)
    return response


@router.post("/account/sessions/{session_id}/end", policy=Policy(READ, needs_workspace=False))
async def end_one(page: Page, session_id: Annotated[str, Path(max_length=60)]) -> Response:
    await page.context.accounts.sessions.end_own(session_id, user_of(page.request)[1])
    return page.go("/account")


@router.post("/account/tokens", policy=Policy(READ, needs_workspace=False))
async def make_own_token(page: Page) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items()}
    try:
        secret = await make_token(page, token_request(form), user_of(page.request)[0])
    except (ValidationError, ClientError) as error:
        return await _view(page, 422, error=said(error))
    return await _view(page, 201, secret=secret)


@router.post("/account/tokens/{token_id}/revoke", policy=Policy(READ, needs_workspace=False))
async def revoke_own_token(page: Page, token_id: Id) -> Response:
    await page.context.accounts.tokens.revoke(token_id, user_of(page.request)[1])
    return page.go("/account")


@router.get("/account/command-line", policy=Policy(READ, needs_workspace=False))
async def ask_for_command_line(
    page: Page, port: Port, state: Word, challenge: Word, device: Annotated[str, Query(max_length=60)] = "here"
) -> Response:
    return page.show("sign_in/command_line.html", port=port, state=state, challenge=challenge, device=device, done=None)


@router.post("/account/command-line", policy=Policy(READ, needs_workspace=False))
async def allow_command_line(page: Page) -> Response:
    """Creates a token for a waiting command line. The browser brings it a code, which it exchanges for the token."""
    form = {name: values[-1] for name, values in (await page.form()).items()}
    port = form.get("port", "")
    if not port.isdecimal() or not 0 < int(port[:6]) < 65536 or len(form.get("challenge", "")) < 20:
        return await _view(page, 422, error="The request of the command line is incomplete. Run `benchyard login` again.")
    caller = caller_of(page.request)
    scope = Scope.ADMIN if caller.scope is Scope.OWNER else caller.scope
    name = f"command line {form.get('device', '')[:40]} {new_token()[:6]}"
    try:
        body = TokenCreate(name=name, scope=scope, expires_in_days=CLI_DAYS)
        token = await make_token(page, body, caller)
    except (ValidationError, ClientError, DuplicateKey) as error:
        detail = said(error) if isinstance(error, ValidationError | ClientError) else "try again"
        return await _view(page, 422, error=detail)
    code = page.context.accounts.command_lines.allow(token.value, form["challenge"])
    callback = f"http://127.0.0.1:{int(port)}/?code={code}&state={form.get('state', '')[:100]}"
    response = page.show("sign_in/command_line.html", done=callback, port=port, state="", challenge="", device="")
    response.headers["refresh"] = f"0;url={callback}"
    return response


async def _view(
    page: Frame, status: int = 200, *, error: str | None = None, notice: str | None = None, secret: Secret | None = None
) -> Response:
    caller = caller_of(page.request)
    person = caller.session_id is not None
    accounts, now = page.context.accounts, page.context.clock.now()
    user_id = (caller.user_id if person else None) or 0
    tokens = [TokenOut.of(row, now, caller.name) for row in await accounts.tokens.of_user(user_id)] if person else []
    sessions = [SessionOut.of(row, caller) for row in await accounts.sessions.of_user(user_id)] if person else []
    only = caller.workspace if caller.token_id else None
    return page.show(
        "accounts/account.html",
        status,
        account=AccountOut.of(caller, await accounts.members.workspaces_of(caller.user_id, caller.role, only=only)),
        person=person,
        sessions=sessions,
        tokens=tokens,
        scopes={scope: text for scope, text in SCOPES.items() if caller.scope.allows(scope)},
        lifetimes=LIFETIMES,
        error=error,
        notice=notice,
        secret=secret,
    )


UserId = Annotated[int, Path(ge=0, le=2**31 - 1)]
ROLES = (Role.VIEWER, Role.MEMBER, Role.ADMIN)


@router.get("/members", policy=Policy(ADMIN))
async def members_page(page: Page) -> Response:
    return await _members_view(page)


@router.post("/members", policy=Policy(ADMIN))
async def add_member(page: Page) -> Response:
    form = await _form(page)
    try:
        body = MemberAdd(email=form.get("email", ""), role=_role(form))
        members = page.context.accounts.members
        user = await members.by_email(body.email.strip())
        await members.put(caller_of(page.request).workspace, user.id or 0, body.role, new=True)
    except (ValidationError, ClientError) as error:
        return await _members_view(page, 422, error=said(error))
    return page.go("/members")


@router.post("/members/name", policy=Policy(ADMIN))
async def rename(page: Page) -> Response:
    form = await _form(page)
    try:
        body = WorkspaceChange(name=form.get("name", ""))
        await page.context.accounts.members.rename(caller_of(page.request).workspace, body.name.strip())
    except (ValidationError, ClientError) as error:
        return await _members_view(page, 422, error=said(error))
    return page.go("/members")


@router.post("/members/workspaces", policy=Policy(OWNER))
async def make_workspace(page: Page) -> Response:
    form = await _form(page)
    try:
        body = WorkspaceCreate(slug=form.get("slug", ""), name=form.get("name", ""))
        await page.context.accounts.members.make_workspace(body.slug, body.name.strip())
    except (ValidationError, ClientError) as error:
        return await _members_view(page, 422, error=said(error))
    return page.go("/members")


@router.post("/members/users/{user_id}", policy=Policy(OWNER))
async def change_user(page: Page, user_id: UserId) -> Response:
    form = await _form(page)
    changes = {name: form[name] == "yes" for name in ("owner", "disabled") if name in form}
    await page.context.accounts.members.change_user(user_id, **changes)
    return page.go("/members")


@router.post("/members/{user_id}/role", policy=Policy(ADMIN))
async def change_role(page: Page, user_id: UserId) -> Response:
    slug = caller_of(page.request).workspace
    try:
        await page.context.accounts.members.put(slug, user_id, _role(await _form(page)))
    except ClientError as error:
        return await _members_view(page, error.status, error=error.detail)
    return page.go("/members")


@router.post("/members/{user_id}/remove", policy=Policy(ADMIN))
async def remove_member(page: Page, user_id: UserId) -> Response:
    await page.context.accounts.members.remove(caller_of(page.request).workspace, user_id)
    return page.go("/members")


async def _form(page: Frame) -> dict[str, str]:
    return {name: values[-1] for name, values in (await page.form()).items()}


def _role(form: dict[str, str]) -> Any:
    role = form.get("role", Role.VIEWER)
    if role not in ROLES:
        raise Invalid("role: viewer, member or admin")
    return Role(role)


async def _members_view(page: Frame, status: int = 200, *, error: str | None = None) -> Response:
    caller, context = caller_of(page.request), page.context
    owner = caller.role is Role.OWNER
    workspace = await context.db.read(lambda s: account_queries.by_slug(s, caller.workspace))
    members = context.accounts.members
    return page.show(
        "accounts/members.html",
        status,
        workspace=workspace,
        members=[MemberOut.of(*member) for member in await members.of(caller.workspace)],
        roles=[role.value for role in ROLES],
        workspaces=await members.workspaces_of(caller.user_id, caller.role) if owner else [],
        users=[UserOut.of(user) for user in await members.users()] if owner else [],
        error=error,
    )
