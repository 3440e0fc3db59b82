"""Sessions of users: rows found by the hash of a secret that only the browser has.

The secret rotates every quarter of an hour. The previous one still works briefly, for requests in flight, and until the new
one is first used, since a response can get lost. Later use means that it was copied and ends the session for both sides. A
session ends after too long an idle time, after its maximum lifetime, or when the provider no longer confirms it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlmodel import Session

from orchestrator.accounts import queries as account_queries
from orchestrator.accounts.tables import User
from orchestrator.accounts.vault import CannotOpen, Vault
from orchestrator.db.session import Database
from orchestrator.errors import NotFound
from orchestrator.sign_in import queries as login_queries
from orchestrator.sign_in.claims import Identity, InvalidIdToken
from orchestrator.sign_in.oidc import Provider, ProviderTrouble, Refused, TokenGrant
from orchestrator.sign_in.tables import LoginSession
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, same_token, token_hash, uuid7

log = structlog.get_logger()

PREFIX = "u."
"""The prefix of a user's session cookie."""
ROTATE_AFTER = timedelta(minutes=15)
STILL_OPENS = timedelta(minutes=1)
SEEN_AGAIN_AFTER = timedelta(minutes=1)
ASK_AGAIN_AFTER = timedelta(seconds=30)
"""Delay after an attempt to refresh; meanwhile other requests use the known state."""
WAITS, WAIT_S = 6, 0.5
"""How long a model call waits for a token that is being refreshed."""


@dataclass(frozen=True)
class SessionLifetime:
    idle: timedelta
    longest: timedelta


@dataclass(frozen=True)
class SignedIn:
    """A valid session."""

    row: LoginSession
    user: User
    workspace_id: int
    """The last workspace; 0 for a user who is in none."""
    slug: str
    role: str
    new_cookie: str | None = None


class Sessions:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        vault: Vault,
        life: SessionLifetime,
        provider: Provider | None,
        model_scope: str | None = None,
    ) -> None:
        """`model_scope`: the scope an access token needs to be kept as its user's key for model calls."""
        self._db = db
        self._clock = clock
        self._vault = vault
        self._life = life
        self._provider = provider
        self._model_scope = model_scope
        self._asking: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def begin(self, user: User, granted: TokenGrant | None, *, agent: str, address: str) -> str:
        """Creates a session and returns the cookie value."""
        secret, now = PREFIX + new_token(), self._clock.now()
        session_id = uuid7(now)

        def work(session: Session) -> None:
            login_queries.forget_before(session, now)
            workspaces = account_queries.workspaces_of(session, user.id or 0)
            row = LoginSession(
                id=session_id,
                secret_hash=token_hash(secret),
                user_id=user.id or 0,
                workspace_id=workspaces[0].id if workspaces else 1,
                agent="".join(char for char in agent if char.isprintable())[:200],
                address=address[:60],
                created_at=now,
                seen_at=now,
                rotated_at=now,
                expires_at=now + self._life.longest,
                **self._sealed(session_id, granted),
            )
            session.add(row)

        await self._db.write(work)
        return secret

    async def find(self, cookie: str, workspace: str | None, *, rotate: bool) -> SignedIn | None:
        """The session of this cookie in the requested workspace; None if there is none. Set `rotate` if the response can
        carry a new cookie.
        """
        secret_hash, now = token_hash(cookie), self._clock.now()
        signed_in = await self._db.read(lambda s: _look(s, secret_hash, workspace))
        if signed_in is None:
            return None
        row = signed_in.row
        over = now >= row.expires_at or now - row.seen_at >= self._life.idle
        if over or not (same_token(row.secret_hash, secret_hash) or self._late(row, secret_hash, now)):
            log.info("session ended", action="session_ended", user=row.user_id, expired=over)
            await self._db.write(lambda s: login_queries.end(s, row.id))
            return None
        if row.tokens_until is not None and row.tokens_until <= now and not await self._confirmed(row, signed_in.user, now):
            return None
        return await self._moved_on(signed_in, secret_hash, now, rotate=rotate)

    def _late(self, row: LoginSession, secret_hash: str, now: datetime) -> bool:
        """Whether the previous secret may still be used."""
        if row.previous_hash is None or not same_token(row.previous_hash, secret_hash):
            return False
        return row.previous_until is None or now <= row.previous_until

    async def _moved_on(self, signed_in: SignedIn, secret_hash: str, now: datetime, *, rotate: bool) -> SignedIn:
        row = signed_in.row
        current = row.secret_hash == secret_hash
        unseen = not current and row.previous_until is None
        if rotate and (now - row.rotated_at >= ROTATE_AFTER if current else unseen):
            secret = PREFIX + new_token()
            changed = await self._change(
                row,
                {"secret_hash": row.secret_hash},
                secret_hash=token_hash(secret),
                previous_hash=secret_hash,
                previous_until=None,
                rotated_at=now,
                seen_at=now,
            )
            return SignedIn(
                row, signed_in.user, signed_in.workspace_id, signed_in.slug, signed_in.role, secret if changed else None
            )
        if current and row.previous_hash is not None and row.previous_until is None:
            await self._change(row, {"secret_hash": secret_hash}, previous_until=now + STILL_OPENS, seen_at=now)
        elif now - row.seen_at >= SEEN_AGAIN_AFTER:
            await self._change(row, {}, seen_at=now)
        return signed_in

    async def _confirmed(self, row: LoginSession, user: User, now: datetime) -> bool:
        """Asks the provider whether the sign-in is still valid. Only one request asks at a time; if the provider cannot be
        reached, it is asked again later.
        """
        if self._provider is None or row.refresh_token is None:
            return True
        if not await self._change(row, {"tokens_until": row.tokens_until}, tokens_until=now + ASK_AGAIN_AFTER):
            return True
        try:
            token = self._vault.open(row.refresh_token, _seal_purpose(row.id, "refresh"))
            identity = Identity(user.issuer, user.subject, user.email, user.name)
            granted = await self._provider.refresh(token, identity)
        except ProviderTrouble as error:
            log.warning("session not refreshed", action="session_unconfirmed", user=row.user_id, error=str(error))
            return True
        except (Refused, InvalidIdToken, CannotOpen) as error:
            log.info("session ended", action="session_refused", user=row.user_id, error=str(error))
            await self._db.write(lambda s: login_queries.end(s, row.id))
            return False
        sealed = self._sealed(row.id, granted)
        await self._change(row, {}, **{name: value for name, value in sealed.items() if value is not None})
        log.info("session refreshed", action="session_refreshed", user=row.user_id)
        return True

    async def _change(self, row: LoginSession, was: dict[str, object], **values: object) -> bool:
        return await self._db.write(lambda s: login_queries.change(s, row.id, was, **values))

    def _sealed(self, session_id: str, granted: TokenGrant | None) -> dict[str, Any]:
        if granted is None:
            return {}
        useful = self._model_scope is not None and (granted.scopes is None or self._model_scope in granted.scopes)
        access = granted.access_token if useful else None
        tokens = {"refresh": granted.refresh_token, "access": access, "id": granted.id_token or None}
        sealed: dict[str, Any] = {
            f"{name}_token": self._vault.seal(value, _seal_purpose(session_id, name)) if value else None
            for name, value in tokens.items()
        }
        return {**sealed, "tokens_until": granted.until if granted.refresh_token else None}

    async def access_token(self, user_id: int) -> str | None:
        """The user's current access token, refreshed if it has expired; None if none is available."""
        async with self._asking[user_id]:  # a refresh token may be valid for one use only
            for _ in range(WAITS):
                now = self._clock.now()
                pair = await self._db.read(lambda s: login_queries.with_access_token(s, user_id, now))  # noqa: B023
                if pair is None:
                    return None
                row, user = pair
                if row.tokens_until is not None and row.tokens_until <= now:
                    await self._confirmed(row, user, now)
                    continue
                if row.tokens_until is None or row.tokens_until - now > ASK_AGAIN_AFTER:
                    break
                await asyncio.sleep(WAIT_S)  # a page may be refreshing it right now
        try:
            return self._vault.open(row.access_token or "", _seal_purpose(row.id, "access"))
        except CannotOpen as error:
            log.error("access token cannot be opened", action="token_unreadable", user=user_id, error=str(error))
            return None

    async def seal_again(self) -> tuple[int, int]:
        """Seals everything with the first master key. Returns how many were sealed and how many could not be opened."""

        def work(session: Session) -> tuple[int, int]:
            sealed_again = unreadable = 0
            for row in login_queries.everyone(session):
                for kind in ("refresh", "access", "id"):
                    sealed, purpose = getattr(row, f"{kind}_token"), _seal_purpose(row.id, kind)
                    if sealed is None or self._vault.is_current(sealed):
                        continue
                    try:
                        setattr(row, f"{kind}_token", self._vault.seal(self._vault.open(sealed, purpose), purpose))
                        sealed_again += 1
                    except CannotOpen:
                        unreadable += 1
                session.add(row)
            return sealed_again, unreadable

        return await self._db.write(work)

    async def id_token(self, session_id: str) -> str | None:
        """The provider's id token, needed to sign out there."""
        row = await self._db.read(lambda s: login_queries.get(s, session_id))
        if row is None or row.id_token is None:
            return None
        try:
            return self._vault.open(row.id_token, _seal_purpose(session_id, "id"))
        except CannotOpen:
            return None

    async def end(self, session_id: str) -> None:
        await self._db.write(lambda s: login_queries.end(s, session_id))

    async def of_user(self, user_id: int) -> Sequence[LoginSession]:
        """A user's sessions, newest first."""
        now = self._clock.now()
        return await self._db.read(lambda s: login_queries.of_user(s, user_id, now))

    async def end_own(self, session_id: str, user_id: int) -> None:
        def end(session: Session) -> None:
            row = login_queries.get(session, session_id)
            if row is None or row.user_id != user_id:
                raise NotFound("there is no such session of yours; GET /api/account/sessions lists them")
            login_queries.end(session, session_id)

        await self._db.write(end)

    async def end_all(self, user_id: int) -> int:
        return await self._db.write(lambda s: login_queries.end_all(s, user_id))

    async def go_to(self, session_id: str, workspace_id: int) -> None:
        """Sets the workspace that the session's pages show."""
        await self._db.write(lambda s: login_queries.change(s, session_id, {}, workspace_id=workspace_id))


def _seal_purpose(session_id: str, kind: str) -> str:
    return f"login_sessions {session_id} {kind}"


def _look(session: Session, secret_hash: str, slug: str | None) -> SignedIn | None:
    row = login_queries.by_secret(session, secret_hash)
    user = account_queries.user(session, row.user_id) if row is not None else None
    if row is None or user is None or user.disabled_at is not None:
        return None
    if slug:
        workspace = account_queries.by_slug(session, slug)
        role = account_queries.role_in(session, row.user_id, workspace.id or 0) if workspace else None
        return (
            SignedIn(row, user, workspace.id or 0, workspace.slug, role)
            if workspace and role
            else SignedIn(row, user, 0, "", "")
        )
    workspace = account_queries.workspace(session, row.workspace_id)
    role = account_queries.role_in(session, row.user_id, row.workspace_id)
    if workspace is not None and role is not None:
        return SignedIn(row, user, row.workspace_id, workspace.slug, role)
    others = account_queries.workspaces_of(session, row.user_id)
    if not others:
        return SignedIn(row, user, 0, "", "")
    return SignedIn(row, user, others[0].id, others[0].slug, others[0].role)
