"""Identifies the caller and the workspace: by the installation's own token, a named token, or a browser session, which was
started with a token or by the identity provider.

A named token is stored only as a hash, and looked up at each request, so that revoking it takes effect at once on every
orchestrator of the database. A token never allows more than its creator may do now. A session cookie names its token and is
signed with the installation's token, so the database's content is not enough to forge one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlmodel import Session

from orchestrator.accounts import queries as account_queries
from orchestrator.db.session import Database
from orchestrator.db.workspaces import DEFAULT_WORKSPACE, Actor
from orchestrator.errors import NotFound
from orchestrator.scopes import Role, Scope
from orchestrator.sign_in.sessions import PREFIX as USER_PREFIX
from orchestrator.sign_in.sessions import Sessions
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import same_token, token_hash
from orchestrator.tokens import queries as token_queries
from orchestrator.tokens.service import PREFIX
from orchestrator.tokens.tables import ApiToken

SESSION_S = 30 * 24 * 3600
USED_AGAIN_AFTER = timedelta(minutes=1)
"""The precision of a token's time of last use."""
DEFAULT_SLUG = "default"
NOWHERE = 0
"""The workspace id of callers who are in no workspace; nothing belongs to it."""


@dataclass(frozen=True)
class Caller:
    name: str
    scope: Scope
    """What they may do now: what their token allows, limited by their role."""
    token_id: int = 0
    """0 for the installation's own token, or a user who signed in."""
    role: Role = Role.OWNER
    user_id: int | None = None
    workspace_id: int = DEFAULT_WORKSPACE
    workspace: str = DEFAULT_SLUG
    everywhere: bool = False
    """Whether the request concerns all workspaces."""
    session_id: str | None = None
    """The session of a user who signed in."""
    new_cookie: str | None = field(default=None, compare=False)
    """Replaces the caller's cookie in the response."""

    @property
    def acting(self) -> Actor | None:
        """The workspace and user for database work."""
        return None if self.everywhere else Actor(self.workspace_id, self.user_id, self.name)


OWNER = Caller("the installation's token", Scope.OWNER)


class Authority:
    """Knows the installation's token, and looks up the others once there is a database."""

    def __init__(self, token: str, clock: Clock) -> None:
        self._token = token
        self._clock = clock
        self._db: Database | None = None
        self._sessions: Sessions | None = None

    def open(self, db: Database | None, sessions: Sessions | None = None) -> None:
        self._db, self._sessions = db, sessions

    async def by_token(self, token: str, workspace: str | None = None) -> Caller | None:
        """The holder of this token, in the workspace they ask for. Raises `NotFound` if they have no access to it."""
        if same_token(token, self._token):
            return await self._owner_in(workspace)
        if self._db is None or not token.startswith(PREFIX):
            return None
        secret = token_hash(token)
        record = await self._db.read(lambda s: _token_record(s, token_queries.by_hash(s, secret), self._clock.now()))
        if record is None or not same_token(record.row.secret_hash, secret):
            return None
        return _in_its_own(await self._caller_with_token(record), workspace)

    async def by_session(self, cookie: str, workspace: str | None = None, *, rotate: bool = False) -> Caller | None:
        if cookie.startswith(USER_PREFIX):
            return await self._user(cookie, workspace, rotate=rotate) if self._sessions is not None else None
        token_id, issued, workspace_id, nonce, seal = _parts(cookie)
        if not 0 <= self._clock.now().timestamp() - issued < SESSION_S or self._db is None:
            return None
        record: _TokenRecord | None = None
        if token_id:
            record = await self._db.read(lambda s: _token_record(s, token_queries.by_id(s, token_id), self._clock.now()))
            if record is None:
                return None
        secret = record.row.secret_hash if record else ""
        if not same_token(seal, self._seal(token_id, issued, workspace_id, secret, nonce)):
            return None
        if await self._db.read(lambda s: token_queries.page_session_ended(s, token_hash(cookie))):
            return None
        if record is not None:
            return _in_its_own(await self._caller_with_token(record), workspace)
        return await self._owner_in(workspace, workspace_id)

    async def _user(self, cookie: str, workspace: str | None, *, rotate: bool) -> Caller | None:
        assert self._sessions is not None
        user_session = await self._sessions.find(cookie, workspace, rotate=rotate)
        if user_session is None:
            return None
        if workspace and not user_session.slug:
            raise _no_workspace(workspace)
        role = Role.OWNER if user_session.user.owner else Role(user_session.role or Role.VIEWER)
        return Caller(
            user_session.user.name or user_session.user.email or user_session.user.subject,
            role.scope,
            role=role,
            user_id=user_session.user.id,
            workspace_id=user_session.workspace_id,
            workspace=user_session.slug,
            session_id=user_session.row.id,
            new_cookie=user_session.new_cookie,
        )

    async def session_for(self, caller: Caller) -> str:
        """A cookie value for a caller who has presented a token, in their current workspace."""
        issued = int(self._clock.now().timestamp())
        secret = ""
        if caller.token_id and self._db is not None:
            row = await self._db.read(lambda s: token_queries.by_id(s, caller.token_id))
            secret = row.secret_hash if row else ""
        nonce = secrets.token_hex(8)  # each sign-in gets its own cookie, which can be revoked separately
        seal = self._seal(caller.token_id, issued, caller.workspace_id, secret, nonce)
        return f"{caller.token_id}.{issued}.{caller.workspace_id}.{nonce}.{seal}"

    async def end_session(self, cookie: str) -> None:
        """Revoke a cookie at sign-out, including any copies. Only for sessions of tokens; a user's session ends where it
        is stored."""
        if self._db is None or cookie.startswith(USER_PREFIX):
            return
        now = self._clock.now()
        until, name = now + timedelta(seconds=SESSION_S), token_hash(cookie)

        def end(session: Session) -> None:
            token_queries.end_page_session(session, name, until, now)

        await self._db.write(end)

    def _seal(self, token_id: int, issued: int, workspace_id: int, secret_hash: str, nonce: str) -> str:
        text = f"benchyard page session 3 {token_id} {issued} {workspace_id} {secret_hash}"
        text += f" {nonce}" if nonce else ""  # cookies of earlier versions have none
        return hmac.new(self._token.encode(), text.encode(), hashlib.sha256).hexdigest()

    def signature(self, text: str) -> str:
        """Signs a URL that carries its own permission."""
        return hmac.new(self._token.encode(), text.encode(), hashlib.sha256).hexdigest()

    async def _owner_in(self, slug: str | None, workspace_id: int = DEFAULT_WORKSPACE) -> Caller:
        if (slug or DEFAULT_SLUG) == DEFAULT_SLUG and (slug or workspace_id == DEFAULT_WORKSPACE):
            return OWNER
        assert self._db is not None
        workspace_row = await self._db.read(
            lambda s: account_queries.by_slug(s, slug) if slug else account_queries.workspace(s, workspace_id)
        )
        if workspace_row is None:
            raise _no_workspace(slug or str(workspace_id))
        return replace(OWNER, workspace_id=workspace_row.id or 0, workspace=workspace_row.slug)

    async def _caller_with_token(self, record: _TokenRecord) -> Caller:
        row, now = record.row, self._clock.now()
        if row.last_used_at is None or now - row.last_used_at >= USED_AGAIN_AFTER:
            await self._used(row.id or 0, now)
        scope = Scope(row.scope)
        if scope is Scope.ADMIN and record.role is Role.OWNER:
            scope = Scope.OWNER
        elif not record.role.scope.allows(scope):
            scope = record.role.scope
        return Caller(row.name, scope, row.id or 0, record.role, row.user_id, row.workspace_id, record.workspace)

    async def _used(self, token_id: int, now: datetime) -> None:
        assert self._db is not None

        def mark(session: Session) -> None:
            token_queries.mark_used(session, token_id, now)

        await self._db.write(mark)


@dataclass(frozen=True)
class _TokenRecord:
    row: ApiToken
    role: Role
    """The creator's role in the token's workspace."""
    workspace: str


def _token_record(session: Session, row: ApiToken | None, now: datetime) -> _TokenRecord | None:
    """The token if it is usable now: not expired, and its creator still has access."""
    if row is None or (row.expires_at is not None and row.expires_at <= now):
        return None
    slug = DEFAULT_SLUG
    if row.workspace_id != DEFAULT_WORKSPACE:
        workspace = account_queries.workspace(session, row.workspace_id)
        if workspace is None:
            return None
        slug = workspace.slug
    role = Role.OWNER if row.user_id is None else account_queries.role_in(session, row.user_id, row.workspace_id)
    return None if role is None else _TokenRecord(row, Role(role), slug)


def _in_its_own(caller: Caller, workspace: str | None) -> Caller:
    if workspace and workspace != caller.workspace:
        raise _no_workspace(workspace)
    return caller


def _no_workspace(slug: str) -> NotFound:
    return NotFound(f"there is no workspace {slug[:60]!r} for you; GET /api/account lists yours")


def _parts(session: str) -> tuple[int, int, int, str, str]:
    """Token, time of issue, workspace, nonce and signature; zeros and empty texts if it is not a session of ours."""
    match session.split("."):
        case [token_id, issued, workspace_id, *nonce, seal] if len(nonce) <= 1 and nonce != [""]:
            numbers = (token_id, issued, workspace_id)
            if all(number.isascii() and number.isdigit() and len(number) < 13 for number in numbers):
                return int(token_id), int(issued), int(workspace_id), "".join(nonce), seal
    return 0, 0, 0, "", ""
