"""The service for workspaces and memberships: create, rename, add, change, remove. It commits before it returns."""

from __future__ import annotations

import re
from collections.abc import Sequence

import structlog
from sqlmodel import Session

from orchestrator.accounts import queries as account_queries
from orchestrator.accounts.queries import WorkspaceAccess
from orchestrator.accounts.tables import Membership, User, Workspace
from orchestrator.db.session import Database, DuplicateKey
from orchestrator.errors import Conflict, Invalid, NotFound
from orchestrator.scopes import Role
from orchestrator.sign_in import queries as login_queries
from orchestrator.system.clock import Clock

log = structlog.get_logger()

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?")


class Members:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def workspaces_of(self, user_id: int | None, role: Role, *, only: str | None = None) -> list[WorkspaceAccess]:
        """The workspaces that a user may use; owners may use all. `only` restricts a named token to its own workspace."""

        if only is not None:
            return [WorkspaceAccess(0, only, only, role.value)]

        def read(session: Session) -> list[WorkspaceAccess]:
            if role is Role.OWNER:
                return [
                    WorkspaceAccess(row.id or 0, row.slug, row.name, "owner") for row in account_queries.workspaces(session)
                ]
            return account_queries.workspaces_of(session, user_id) if user_id is not None else []

        return await self._db.read(read)

    async def make_workspace(self, slug: str, name: str) -> Workspace:
        if not SLUG.fullmatch(slug):
            raise Invalid("slug: small letters, digits and hyphens, at most 60, and no hyphen at the ends")
        row = Workspace(slug=slug, name=name, created_at=self._clock.now())

        def work(session: Session) -> Workspace:
            session.add(row)
            session.flush()
            return row

        try:
            workspace = await self._db.write(work)
        except DuplicateKey as error:
            raise Conflict(f"there is a workspace {slug!r} already; choose another slug") from error
        log.info("workspace made", action="workspace_made", workspace=workspace.id, slug=slug)
        return workspace

    async def rename(self, slug: str, name: str) -> Workspace:
        """The slug stays, because URLs and scripts use it."""

        def work(session: Session) -> Workspace:
            row = known_workspace(session, slug)
            row.name = name
            session.add(row)
            return row

        return await self._db.write(work)

    async def of(self, slug: str) -> Sequence[tuple[User, Membership]]:
        return await self._db.read(lambda s: account_queries.members(s, known_workspace(s, slug).id or 0))

    async def put(self, slug: str, user_id: int, role: Role, *, new: bool = False) -> tuple[User, Membership]:
        """Changes a member's role, or with `new` adds a member."""
        if role is Role.OWNER:
            raise Invalid("role: viewer, member or admin; only an owner can make another owner, for the whole installation")
        now = self._clock.now()

        def work(session: Session) -> tuple[User, Membership]:
            workspace = known_workspace(session, slug)
            row = account_queries.membership(session, user_id, workspace.id or 0)
            if row is None and not new:
                raise NotFound(f"user {user_id} is not a member of {slug!r}")
            user = known_user(session, user_id)
            if row is None:
                row = Membership(user_id=user_id, workspace_id=workspace.id or 0, role=role.value, created_at=now)
            row.role = role.value
            session.add(row)
            session.flush()
            return user, row

        member = await self._db.write(work)
        log.info("member changed", action="member_put", workspace=slug, user=user_id, role=role.value)
        return member

    async def remove(self, slug: str, user_id: int) -> None:
        """Removes a member. Everything they created stays; their tokens for this workspace stop working."""

        def work(session: Session) -> None:
            workspace = known_workspace(session, slug)
            row = account_queries.membership(session, user_id, workspace.id or 0)
            if row is None:
                raise NotFound(f"user {user_id} is not a member of {slug!r}")
            session.delete(row)

        await self._db.write(work)
        log.info("member removed", action="member_removed", workspace=slug, user=user_id)

    async def users(self) -> Sequence[User]:
        return await self._db.read(account_queries.users)

    async def by_email(self, email: str) -> User:
        """Finds a user to add as a member. Raises `NotFound` if nobody or more than one user has the address."""
        users = [user for user in await self.users() if email and user.email.casefold() == email.casefold()]
        if len(users) != 1:
            raise NotFound(f"{len(users)} users here have the address {email!r}; they must have signed in once")
        return users[0]

    async def change_user(self, user_id: int, *, owner: bool | None = None, disabled: bool | None = None) -> User:
        """Changes ownership, or disables the account, which ends the user's sessions and makes their tokens useless."""
        now = self._clock.now()

        def work(session: Session) -> User:
            user = known_user(session, user_id)
            if owner is not None:
                user.owner = owner
            if disabled is not None:
                user.disabled_at = now if disabled else None
                if disabled:
                    login_queries.end_all(session, user_id)
            session.add(user)
            session.flush()
            return user

        changed = await self._db.write(work)
        log.info(
            "user changed", action="user_changed", user=user_id, owner=changed.owner, disabled=bool(changed.disabled_at)
        )
        return changed


def known_workspace(session: Session, slug: str) -> Workspace:
    row = account_queries.by_slug(session, slug)
    if row is None:
        raise NotFound(f"there is no workspace {slug[:60]!r} for you; GET /api/account lists yours")
    return row


def known_user(session: Session, user_id: int) -> User:
    row = account_queries.user(session, user_id)
    if row is None:
        raise NotFound(f"there is no user {user_id}; a user is created at the first sign-in")
    return row
