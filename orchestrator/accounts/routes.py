"""REST for accounts: who am I, workspaces, members, users, my sessions and my tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from fastapi import Path, Request
from pydantic import Field
from sqlmodel import Session

from orchestrator.accounts.tables import Membership, User
from orchestrator.errors import Forbidden, NotFound
from orchestrator.http.context import Context, caller_of
from orchestrator.http.identity import Caller
from orchestrator.http.policy import ADMIN, OWNER, READ, Policy, Router
from orchestrator.http.schemas import Answer, Body, Page, Text
from orchestrator.scopes import Role, Scope
from orchestrator.sign_in import queries as login_queries
from orchestrator.sign_in.tables import LoginSession
from orchestrator.tokens import queries as token_queries
from orchestrator.tokens.routes import TokenCreate, TokenCreated, TokenOut, make_token, remove_token

router = Router(prefix="/api", tags=["accounts"])

Slug = Annotated[str, Path(min_length=1, max_length=60)]
UserId = Annotated[int, Path(ge=0, le=2**31 - 1)]
Name = Annotated[Text, Field(min_length=1, max_length=200, pattern=r"\S")]


class OwnWorkspace(Answer):
    slug: str
    name: str
    role: Role


class AccountOut(Answer):
    """Who calls, what they may do here, and where else they may go."""

    name: str
    user_id: int | None
    scope: Scope
    role: Role
    workspace: str
    workspaces: list[OwnWorkspace]


class WorkspaceCreate(Body):
    slug: Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?$", description="It never changes.")]
    name: Name


class WorkspaceChange(Body):
    name: Name


class WorkspaceOut(Answer):
    slug: str
    name: str


class MemberPut(Body):
    role: Literal[Role.VIEWER, Role.MEMBER, Role.ADMIN]


class MemberAdd(MemberPut):
    email: Annotated[Text, Field(min_length=3, max_length=320, description="Of somebody who has signed in once.")]


class MemberOut(Answer):
    user_id: int
    name: str
    email: str
    role: Role
    since: datetime

    @classmethod
    def of(cls, user: User, row: Membership) -> Self:
        return cls(user_id=user.id or 0, name=user.name, email=user.email, role=Role(row.role), since=row.created_at)


class UserChange(Body):
    owner: bool | None = None
    disabled: bool | None = None


class UserOut(Answer):
    id: int
    issuer: str
    subject: str
    email: str
    name: str
    owner: bool
    disabled: bool
    created_at: datetime
    last_seen_at: datetime | None

    @classmethod
    def of(cls, user: User) -> Self:
        known = {name: getattr(user, name) for name in cls.model_fields if name not in ("id", "disabled")}
        return cls(id=user.id or 0, disabled=user.disabled_at is not None, **known)


class SessionOut(Answer):
    id: str
    agent: str
    address: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    this: bool

    @classmethod
    def of(cls, row: LoginSession, caller: Caller) -> Self:
        known = {name: getattr(row, name) for name in cls.model_fields if name != "this"}
        return cls(**known, this=row.id == caller.session_id)


class Ended(Answer):
    ended: int


@router.get("/account", policy=Policy(READ, needs_workspace=False))
async def get_account(request: Request, context: Context) -> AccountOut:
    """Who I am: name, role, workspace, and the workspaces that I may choose with `X-Benchyard-Workspace`."""
    caller = caller_of(request)
    return AccountOut(
        name=caller.name,
        user_id=caller.user_id,
        scope=caller.scope,
        role=caller.role,
        workspace=caller.workspace,
        workspaces=await places_of(caller, context),
    )


async def places_of(caller: Caller, context: Context) -> list[OwnWorkspace]:
    """Where somebody may go; a named token stays where it is."""
    if caller.token_id:
        return [OwnWorkspace(slug=caller.workspace, name=caller.workspace, role=caller.role)]
    places = await context.accounts.members.places(caller.user_id, caller.role)
    return [OwnWorkspace(slug=place.slug, name=place.name, role=Role(place.role)) for place in places]


@router.get("/account/sessions", policy=Policy(READ, needs_workspace=False))
async def list_sessions(request: Request, context: Context) -> Page[SessionOut]:
    """Where I am signed in, newest first."""
    caller = _signed_in(request)
    now = context.clock.now()
    rows = await context.db.read(lambda s: login_queries.of_user(s, caller.user_id or 0, now))
    return Page(items=[SessionOut.of(row, caller) for row in rows])


@router.delete("/account/sessions", policy=Policy(READ, needs_workspace=False))
async def end_all_sessions(request: Request, context: Context) -> Ended:
    """Sign out everywhere, here too."""
    return Ended(ended=await context.accounts.sessions.end_all(_signed_in(request).user_id or 0))


@router.delete("/account/sessions/{session_id}", policy=Policy(READ, needs_workspace=False), status_code=204)
async def end_session(session_id: Annotated[str, Path(max_length=60)], request: Request, context: Context) -> None:
    """Sign out in one place."""
    caller = _signed_in(request)

    def end(session: Session) -> None:
        row = login_queries.get(session, session_id)
        if row is None or row.user_id != caller.user_id:
            raise NotFound("there is no such session of yours; GET /api/account/sessions lists them")
        login_queries.end(session, session_id)

    await context.db.write(end)


@router.get("/account/tokens", policy=Policy(READ, needs_workspace=False))
async def list_own_tokens(request: Request, context: Context) -> Page[TokenOut]:
    """My own tokens in this workspace."""
    caller = _signed_in(request)
    rows = await context.db.read(lambda s: token_queries.of_user(s, caller.user_id or 0))
    now = context.clock.now()
    return Page(items=[TokenOut.of(row, now, caller_of(request).name) for row in rows])


@router.post("/account/tokens", policy=Policy(READ, needs_workspace=False), status_code=201)
async def create_own_token(body: TokenCreate, request: Request, context: Context) -> TokenCreated:
    """A token that may do no more than I, in this workspace, and ends with my membership."""
    return await make_token(body, _signed_in(request), request, context)


@router.delete("/account/tokens/{token_id}", policy=Policy(READ, needs_workspace=False), status_code=204)
async def revoke_own_token(token_id: UserId, request: Request, context: Context) -> None:
    caller = _signed_in(request)
    await remove_token(token_id, context, user_id=caller.user_id)


@router.get("/workspaces", policy=Policy(READ))
async def list_workspaces(request: Request, context: Context) -> Page[OwnWorkspace]:
    """The workspaces that I may enter."""
    return Page(items=await places_of(caller_of(request), context))


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


def _signed_in(request: Request) -> Caller:
    caller = caller_of(request)
    if caller.user_id is None or caller.session_id is None:
        raise Forbidden("This is about the account of a person: sign in on the pages; a token has no account.")
    return caller
