"""Sign-in: browsers are sent to the identity provider and return once; command lines wait for a browser or a device code."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import structlog
from sqlmodel import Session

from orchestrator.accounts import queries as account_queries
from orchestrator.accounts.tables import Membership, User
from orchestrator.db.session import Database
from orchestrator.db.workspaces import DEFAULT_WORKSPACE
from orchestrator.sign_in import queries as login_queries
from orchestrator.sign_in.claims import Identity, InvalidIdToken
from orchestrator.sign_in.oidc import Provider, ProviderTrouble, Refused, TokenGrant
from orchestrator.sign_in.tables import LoginAttempt
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, same_token, token_hash

log = structlog.get_logger()

ATTEMPT_LASTS = timedelta(minutes=10)
AGAIN = "Sign in again."


class SignInFailed(Exception):
    """Why the sign-in failed, as a sentence for the person, with what they can do."""

    def __init__(self, detail: str, status: int = 400) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True)
class CompletedSignIn:
    user: User
    granted: TokenGrant
    wanted: str


class SignIn:
    def __init__(self, db: Database, clock: Clock, provider: Provider, new_users: str) -> None:
        self._db = db
        self._clock = clock
        self._provider = provider
        self._new_users = new_users

    async def sign_out_address(self, id_token: str | None, after: str) -> str | None:
        """The URL that ends the session at the identity provider, if it offers one."""
        try:
            return await self._provider.sign_out_address(id_token, after)
        except ProviderTrouble:
            return None  # signed out here in any case

    async def leave(self, browser: str, next_page: str, redirect_uri: str) -> str:
        """The URL at the provider to redirect the browser to. `browser` is the secret in its cookie."""
        state, nonce, verifier = new_token(), new_token(), secrets.token_urlsafe(48)
        now = self._clock.now()
        row = LoginAttempt(
            state_hash=token_hash(state),
            browser_hash=token_hash(browser),
            nonce=nonce,
            verifier=verifier,
            wanted=next_page[:4000],
            created_at=now,
            expires_at=now + ATTEMPT_LASTS,
        )
        try:
            address = await self._provider.address(redirect_uri, state=state, nonce=nonce, verifier=verifier)
        except ProviderTrouble as error:
            raise self._trouble(error) from error

        def work(session: Session) -> None:
            login_queries.forget_before(session, now)
            session.add(row)

        await self._db.write(work)
        return address

    async def arrive(self, query: Mapping[str, str], browser: str | None, redirect_uri: str) -> CompletedSignIn:
        """Handles the browser's return with a code or an error. Raises `SignInFailed`."""
        state = token_hash(query.get("state", ""))
        attempt = await self._db.write(lambda s: login_queries.take_attempt(s, state))
        if attempt is None:
            raise SignInFailed(f"This sign-in was begun elsewhere, or was used already. {AGAIN}")
        if attempt.expires_at <= self._clock.now():
            raise SignInFailed(f"This sign-in took more than ten minutes. {AGAIN}")
        if browser is None or not same_token(attempt.browser_hash, token_hash(browser)):
            raise SignInFailed(
                f"This sign-in was begun in another browser, or cookies are blocked. {AGAIN} Allow cookies for this site."
            )
        issuer = self._provider.client.issuer
        if query.get("iss", issuer) != issuer:
            raise SignInFailed(f"The answer came from another provider than {issuer}. {AGAIN}")
        if (error := query.get("error")) is not None:
            description = query.get("error_description", "")[:300]
            log.info("sign-in refused", action="sign_in_refused", error=error[:100])
            if error == "access_denied":
                raise SignInFailed(
                    "You, or your provider, did not agree to the sign-in. Sign in again, or ask the provider.", 403
                )
            raise SignInFailed(
                f"The provider refused: {error[:100]} {description}. Sign in again; if that does not help, ask it."
            )
        try:
            granted = await self._provider.redeem(
                query.get("code", ""), redirect_uri, nonce=attempt.nonce, verifier=attempt.verifier
            )
        except Refused as refusal:
            log.warning("code refused", action="code_refused", error=str(refusal))
            if refusal.code == "invalid_client":
                raise SignInFailed(
                    "The provider does not know this installation: BENCHYARD_OIDC_CLIENT_ID or the secret is wrong. "
                    "Tell your administrator.",
                    502,
                ) from refusal
            raise SignInFailed(
                f"The provider did not accept the code; it was used already or is too old. {AGAIN}"
            ) from refusal
        except InvalidIdToken as doubt:
            log.warning("id token not believed", action="id_token_refused", error=str(doubt))
            raise SignInFailed(f"The provider's ID token is not valid: {doubt}. {AGAIN}", 403) from doubt
        except ProviderTrouble as trouble:
            raise self._trouble(trouble) from trouble
        return CompletedSignIn(await self.known(granted.identity), granted, attempt.wanted)

    async def known(self, identity: Identity) -> User:
        """The user with this identity, created at the first sign-in. Raises `SignInFailed`."""
        now = self._clock.now()

        def work(session: Session) -> User:
            user = account_queries.by_identity(session, identity.issuer, identity.subject)
            if user is None:
                user = User(issuer=identity.issuer, subject=identity.subject, created_at=now)
                session.add(user)
                session.flush()
                if self._new_users != "wait":
                    session.add(
                        Membership(
                            user_id=user.id or 0, workspace_id=DEFAULT_WORKSPACE, role=self._new_users, created_at=now
                        )
                    )
                log.info("user came for the first time", action="user_made", user=user.id)
            user.email, user.name = identity.email or user.email, identity.name or user.name
            user.last_seen_at = now
            session.add(user)
            session.flush()
            return user

        user = await self._db.write(work)
        if user.disabled_at is not None:
            raise SignInFailed("Your account here was closed. Ask an owner of this installation to open it again.", 403)
        return user

    def _trouble(self, error: ProviderTrouble) -> SignInFailed:
        log.warning("identity provider trouble", action="provider_trouble", error=str(error))
        return SignInFailed(
            f"The identity provider cannot be used now: {error}. Try again shortly, or sign in with a token.", 502
        )


def challenge_of(verifier: str) -> str:
    """S256 of RFC 7636."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


LASTS_S = 600.0
MOST = 1000

T = TypeVar("T")


@dataclass(frozen=True)
class Allowed:
    """A person agreed in a browser; `token` is for whoever presents the verifier."""

    token: str
    challenge: str


class CommandLines:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: dict[str, tuple[float, Allowed]] = {}
        self._devices: dict[str, tuple[float, str]] = {}

    def allow(self, token: str, challenge: str) -> str:
        """A code that can be exchanged for the token once."""
        code = new_token()
        _keep(self._codes, token_hash(code), Allowed(token, challenge), self._clock.monotonic())
        return code

    def redeem(self, code: str, verifier: str) -> str | None:
        entry = self._codes.pop(token_hash(code), None)
        if entry is None or entry[0] < self._clock.monotonic():
            return None
        return entry[1].token if same_token(challenge_of(verifier), entry[1].challenge) else None

    def wait_for(self, device_code: str) -> str:
        """A handle that the command line uses instead of the provider's own device code."""
        handle = new_token()
        _keep(self._devices, token_hash(handle), device_code, self._clock.monotonic())
        return handle

    def device(self, handle: str) -> str | None:
        entry = self._devices.get(token_hash(handle))
        return entry[1] if entry is not None and entry[0] >= self._clock.monotonic() else None

    def done(self, handle: str) -> None:
        self._devices.pop(token_hash(handle), None)


def _keep(entries: dict[str, tuple[float, T]], key: str, value: T, now: float) -> None:
    for old in [name for name, (until, _) in entries.items() if until < now]:
        del entries[old]
    while len(entries) >= MOST:
        del entries[next(iter(entries))]
    entries[key] = (now + LASTS_S, value)
