"""REST for accounts: the caller, workspaces, members, users, own sessions and own tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from orchestrator.accounts.queries import WorkspaceAccess
from orchestrator.accounts.schemas import (
    AccountOut,
    Ended,
    MemberAdd,
    MemberOut,
    MemberPut,
    OwnWorkspace,
    SessionOut,
    UserChange,
    UserOut,
    WorkspaceChange,
    WorkspaceCreate,
    WorkspaceOut,
)
from orchestrator.errors import NotFound
from orchestrator.http.access.identity import Caller
from orchestrator.http.context import Context, Services, caller_of, user_of
from orchestrator.http.policy import ADMIN, OWNER, READ, Policy, Router
from orchestrator.http.schemas import Page
from orchestrator.scopes import Role
from orchestrator.tokens.routes import make_token
from orchestrator.tokens.schemas import TokenCreate, TokenCreated, TokenOut

router = Router(prefix="/api", tags=["accounts"])

Slug = Annotated[str, Path(min_length=1, max_length=60)]
UserId = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("/account", policy=Policy(READ, needs_workspace=False))
async def get_account(request: Request, context: Context) -> AccountOut:
    """The caller: name, role, workspace, and the workspaces that `X-Benchyard-Workspace` can select."""
    caller = caller_of(request)
    return AccountOut.of(caller, await _workspaces(caller, context))


@router.get("/account/sessions", policy=Policy(READ, needs_workspace=False))
async def list_sessions(request: Request, context: Context) -> Page[SessionOut]:
    """My sessions, newest first."""
    caller, user_id = user_of(request)
    return Page(items=[SessionOut.of(row, caller) for row in await context.accounts.sessions.of_user(user_id)])


@router.delete("/account/sessions", policy=Policy(READ, needs_workspace=False))
async def end_all_sessions(request: Request, context: Context) -> Ended:
    """Sign out everywhere, including here."""
    return Ended(ended=await context.accounts.sessions.end_all(user_of(request)[1]))


@router.delete("/account/sessions/{session_id}", policy=Policy(READ, needs_workspace=False), status_code=204)
async def end_session(session_id: Annotated[str, Path(max_length=60)], request: Request, context: Context) -> None:
    """End one of my sessions."""
    await context.accounts.sessions.end_own(session_id, user_of(request)[1])


@router.get("/account/tokens", policy=Policy(READ, needs_workspace=False))
async def list_own_tokens(request: Request, context: Context) -> Page[TokenOut]:
    """My own tokens in this workspace."""
    caller, user_id = user_of(request)
    now = context.clock.now()
    return Page(items=[TokenOut.of(row, now, caller.name) for row in await context.accounts.tokens.of_user(user_id)])


@router.post("/account/tokens", policy=Policy(READ, needs_workspace=False), status_code=201)
async def create_own_token(body: TokenCreate, request: Request, context: Context) -> TokenCreated:
    """Create a token with at most my own rights in this workspace. It ends with my membership."""
    return await make_token(body, user_of(request)[0], request, context)


@router.delete("/account/tokens/{token_id}", policy=Policy(READ, needs_workspace=False), status_code=204)
async def revoke_own_token(token_id: UserId, request: Request, context: Context) -> None:
    await context.accounts.tokens.revoke(token_id, user_of(request)[1])


@router.get("/workspaces", policy=Policy(READ))
async def list_workspaces(request: Request, context: Context) -> Page[OwnWorkspace]:
    """The workspaces that I may use."""
    return Page(items=[OwnWorkspace.of(workspace) for workspace in await _workspaces(caller_of(request), context)])


@router.post("/workspaces", policy=Policy(OWNER), status_code=201)
async def create_workspace(body: WorkspaceCreate, context: Context) -> WorkspaceOut:
    """Create a workspace; owners only."""
    workspace = await context.accounts.members.make_workspace(body.slug, body.name.strip())
    return WorkspaceOut(slug=workspace.slug, name=workspace.name)


@router.patch("/workspaces/{slug}", policy=Policy(ADMIN))
async def rename_workspace(slug: Slug, body: WorkspaceChange, request: Request, context: Context) -> WorkspaceOut:
    _check_own_workspace(slug, request)
    row = await context.accounts.members.rename(slug, body.name.strip())
    return WorkspaceOut(slug=row.slug, name=row.name)


@router.get("/workspaces/{slug}/members", policy=Policy(READ))
async def list_members(slug: Slug, request: Request, context: Context) -> Page[MemberOut]:
    _check_own_workspace(slug, request)
    return Page(items=[MemberOut.of(*member) for member in await context.accounts.members.of(slug)])


@router.post("/workspaces/{slug}/members", policy=Policy(ADMIN), status_code=201)
async def add_member(slug: Slug, body: MemberAdd, request: Request, context: Context) -> MemberOut:
    """Add somebody by e-mail address; they must have signed in once."""
    _check_own_workspace(slug, request)
    user = await context.accounts.members.by_email(body.email.strip())
    return MemberOut.of(*await context.accounts.members.put(slug, user.id or 0, body.role, new=True))


@router.put("/workspaces/{slug}/members/{user_id}", policy=Policy(ADMIN))
async def put_member(slug: Slug, user_id: UserId, body: MemberPut, request: Request, context: Context) -> MemberOut:
    """Change a member's role. Owners can also add a member this way."""
    _check_own_workspace(slug, request)
    owner = caller_of(request).role is Role.OWNER
    return MemberOut.of(*await context.accounts.members.put(slug, user_id, body.role, new=owner))


@router.delete("/workspaces/{slug}/members/{user_id}", policy=Policy(ADMIN), status_code=204)
async def remove_member(slug: Slug, user_id: UserId, request: Request, context: Context) -> None:
    """Remove a member. Everything they created stays; their tokens for this workspace stop working."""
    _check_own_workspace(slug, request)
    await context.accounts.members.remove(slug, user_id)


@router.get("/users", policy=Policy(OWNER))
async def list_users(context: Context) -> Page[UserOut]:
    """All users who have ever signed in; owners only."""
    return Page(items=[UserOut.of(user) for user in await context.accounts.members.users()])


@router.patch("/users/{user_id}", policy=Policy(OWNER))
async def change_user(user_id: UserId, body: UserChange, context: Context) -> UserOut:
    """Grant or withdraw ownership, disable or enable the account."""
    return UserOut.of(await context.accounts.members.change_user(user_id, owner=body.owner, disabled=body.disabled))


def _check_own_workspace(slug: str, request: Request) -> None:
    """Limits callers who are not owners to their own workspace; for them, other workspaces do not exist."""
    caller = caller_of(request)
    if caller.role is not Role.OWNER and slug != caller.workspace:
        raise NotFound(f"there is no workspace {slug[:60]!r} for you; GET /api/account lists yours")


async def _workspaces(caller: Caller, context: Services) -> list[WorkspaceAccess]:
    only = caller.workspace if caller.token_id else None
    return await context.accounts.members.workspaces_of(caller.user_id, caller.role, only=only)
