"""REST for accounts: who am I, workspaces, members, users, my sessions and my tokens."""

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
from orchestrator.http.context import Context, Services, caller_of, user_of
from orchestrator.http.identity import Caller
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
    """Who I am: name, role, workspace, and the workspaces that I may choose with `X-Benchyard-Workspace`."""
    caller = caller_of(request)
    return AccountOut.of(caller, await _places(caller, context))


@router.get("/account/sessions", policy=Policy(READ, needs_workspace=False))
async def list_sessions(request: Request, context: Context) -> Page[SessionOut]:
    """Where I am signed in, newest first."""
    caller, user_id = user_of(request)
    return Page(items=[SessionOut.of(row, caller) for row in await context.accounts.sessions.of_user(user_id)])


@router.delete("/account/sessions", policy=Policy(READ, needs_workspace=False))
async def end_all_sessions(request: Request, context: Context) -> Ended:
    """Sign out everywhere, here too."""
    return Ended(ended=await context.accounts.sessions.end_all(user_of(request)[1]))


@router.delete("/account/sessions/{session_id}", policy=Policy(READ, needs_workspace=False), status_code=204)
async def end_session(session_id: Annotated[str, Path(max_length=60)], request: Request, context: Context) -> None:
    """Sign out in one place."""
    await context.accounts.sessions.end_own(session_id, user_of(request)[1])


@router.get("/account/tokens", policy=Policy(READ, needs_workspace=False))
async def list_own_tokens(request: Request, context: Context) -> Page[TokenOut]:
    """My own tokens in this workspace."""
    caller, user_id = user_of(request)
    now = context.clock.now()
    return Page(items=[TokenOut.of(row, now, caller.name) for row in await context.accounts.tokens.of_user(user_id)])


@router.post("/account/tokens", policy=Policy(READ, needs_workspace=False), status_code=201)
async def create_own_token(body: TokenCreate, request: Request, context: Context) -> TokenCreated:
    """A token that may do no more than I, in this workspace, and ends with my membership."""
    return await make_token(body, user_of(request)[0], request, context)


@router.delete("/account/tokens/{token_id}", policy=Policy(READ, needs_workspace=False), status_code=204)
async def revoke_own_token(token_id: UserId, request: Request, context: Context) -> None:
    await context.accounts.tokens.revoke(token_id, user_of(request)[1])


@router.get("/workspaces", policy=Policy(READ))
async def list_workspaces(request: Request, context: Context) -> Page[OwnWorkspace]:
    """The workspaces that I may enter."""
    return Page(items=[OwnWorkspace.of(place) for place in await _places(caller_of(request), context)])


@router.post("/workspaces", policy=Policy(OWNER), status_code=201)
async def create_workspace(body: WorkspaceCreate, context: Context) -> WorkspaceOut:
    """Only owners make workspaces."""
    made = await context.accounts.members.make_workspace(body.slug, body.name.strip())
    return WorkspaceOut(slug=made.slug, name=made.name)


@router.patch("/workspaces/{slug}", policy=Policy(ADMIN))
async def rename_workspace(slug: Slug, body: WorkspaceChange, request: Request, context: Context) -> WorkspaceOut:
    _mine(slug, request)
    row = await context.accounts.members.rename(slug, body.name.strip())
    return WorkspaceOut(slug=row.slug, name=row.name)


@router.get("/workspaces/{slug}/members", policy=Policy(READ))
async def list_members(slug: Slug, request: Request, context: Context) -> Page[MemberOut]:
    _mine(slug, request)
    return Page(items=[MemberOut.of(*each) for each in await context.accounts.members.of(slug)])


@router.post("/workspaces/{slug}/members", policy=Policy(ADMIN), status_code=201)
async def add_member(slug: Slug, body: MemberAdd, request: Request, context: Context) -> MemberOut:
    """Add somebody by their e-mail address; they must have signed in once."""
    _mine(slug, request)
    user = await context.accounts.members.by_email(body.email.strip())
    return MemberOut.of(*await context.accounts.members.put(slug, user.id or 0, body.role, new=True))


@router.put("/workspaces/{slug}/members/{user_id}", policy=Policy(ADMIN))
async def put_member(slug: Slug, user_id: UserId, body: MemberPut, request: Request, context: Context) -> MemberOut:
    """Change what a member is. Owners may also make somebody a member so."""
    _mine(slug, request)
    owner = caller_of(request).role is Role.OWNER
    return MemberOut.of(*await context.accounts.members.put(slug, user_id, body.role, new=owner))


@router.delete("/workspaces/{slug}/members/{user_id}", policy=Policy(ADMIN), status_code=204)
async def remove_member(slug: Slug, user_id: UserId, request: Request, context: Context) -> None:
    """What they made stays; their tokens for this workspace open nothing any more."""
    _mine(slug, request)
    await context.accounts.members.remove(slug, user_id)


@router.get("/users", policy=Policy(OWNER))
async def list_users(context: Context) -> Page[UserOut]:
    """Everybody who has ever signed in; for owners."""
    return Page(items=[UserOut.of(user) for user in await context.accounts.members.users()])


@router.patch("/users/{user_id}", policy=Policy(OWNER))
async def change_user(user_id: UserId, body: UserChange, context: Context) -> UserOut:
    """Make somebody an owner or no more, close their account or open it again."""
    return UserOut.of(await context.accounts.members.change_user(user_id, owner=body.owner, disabled=body.disabled))


def _mine(slug: str, request: Request) -> None:
    """Whoever is no owner speaks of their own workspace only; others look as if they were not there."""
    caller = caller_of(request)
    if caller.role is not Role.OWNER and slug != caller.workspace:
        raise NotFound(f"there is no workspace {slug[:60]!r} for you; GET /api/account lists yours")


async def _places(caller: Caller, context: Services) -> list[WorkspaceAccess]:
    only = caller.workspace if caller.token_id else None
    return await context.accounts.members.places(caller.user_id, caller.role, only=only)
