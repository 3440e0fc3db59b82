"""Provider keys that callers bring: stored sealed and sent only to the origin they were given for. A run uses the first of:
the user's own key, the access token of their sign-in (if configured), the workspace's key, the service's key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

import structlog
from sqlmodel import Session

from orchestrator.accounts.vault import CannotOpen, Vault
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.db.workspaces import workspace_of
from orchestrator.errors import Forbidden, Invalid, NotFound
from orchestrator.gateway.edge.errors import Code, GatewayError
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.gateway.upstream.secrets.credentials import SYSTEM, Payer, PayerKind
from orchestrator.provider_keys import queries as key_queries
from orchestrator.provider_keys.tables import OF_WORKSPACE, ProviderKey
from orchestrator.scopes import Scope
from orchestrator.sign_in import queries as login_queries
from orchestrator.system.clock import Clock

log = structlog.get_logger()

STORED, SIGNED_IN = "key:", "sign-in:"
SHORTEST_HINTED = 12
UserToken = Callable[[int], Awaitable[str | None]]
"""Returns the access token that the identity provider gave a user, refreshed if necessary."""


class Holder(StrEnum):
    USER = "user"  #: for the caller's own runs
    WORKSPACE = "workspace"  #: for all runs of the workspace


@dataclass(frozen=True)
class KeyPolicy:
    """`system_for_all`: whether members may use the service's own keys. `token_provider`: the provider at which a user's
    access token serves as their key.
    """

    system_for_all: bool = True
    token_provider: str | None = None


@dataclass(frozen=True)
class Choice:
    payer: Payer
    refused: str | None = None


class ProviderKeys:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        vault: Vault,
        directory: ProviderDirectory,
        policy: KeyPolicy,
        user_token: UserToken,
    ) -> None:
        self._db = db
        self._clock = clock
        self._vault = vault
        self.directory = directory
        self._policy = policy
        self._user_token = user_token

    @property
    def providers(self) -> Mapping[str, Provider]:
        return self.directory.current

    async def listed(self, user_id: int | None) -> list[ProviderKey]:
        return list(await self._db.read(lambda session: key_queries.visible(session, user_id)))

    async def put(
        self, *, name: str, provider: str, secret: str, base_url: str | None, user_id: int, by: str
    ) -> tuple[ProviderKey, bool]:
        """Stores a key, replacing the holder's earlier one for this provider; returns whether it is new."""
        configured = self.providers.get(provider)
        if configured is None:
            raise Invalid(f"provider: there is no {provider!r} here; choose one of {', '.join(sorted(self.providers))}")
        origin = origin_of(configured.base_url)
        if base_url is not None and origin_of(base_url) != origin:
            raise Invalid(f"base_url: {provider} is at {origin} here; a key for another address is not sent there")
        if not secret.isascii() or not secret.isprintable() or " " in secret:
            raise Invalid("key: it has characters that a key cannot have; copy the whole key again")
        now = self._clock.now()
        hint = secret[-4:] if len(secret) >= SHORTEST_HINTED else ""

        def store(session: Session) -> tuple[ProviderKey, bool]:
            row = key_queries.of_holder(session, user_id, provider)
            purpose = seal_purpose(workspace_of(session), user_id, provider, origin)
            new = row is None
            row = row or ProviderKey(provider=provider, user_id=user_id, created_at=now)  # type: ignore[call-arg]
            row.name, row.origin, row.hint, row.sealed = name, origin, hint, self._vault.seal(secret, purpose)
            row.created_by, row.updated_at = by, now
            session.add(row)
            session.flush()
            return row, new

        return await self._db.write(store)

    async def remove(self, key_id: int, user_id: int | None, *, admin: bool) -> ProviderKey:
        def delete(session: Session) -> ProviderKey:
            row = key_queries.get(session, key_id)
            if row is None or row.user_id not in (OF_WORKSPACE, user_id):
                raise NotFound(f"there is no key {key_id}; GET /api/keys lists the existing ones")
            if row.user_id == OF_WORKSPACE and not admin:
                raise Forbidden("This key is the workspace's; only its admins may remove it.")
            session.delete(row)
            return row

        return await self._db.write(delete)

    async def rotate(self) -> tuple[int, int]:
        """Seals everything again with the first master key. Returns the numbers sealed and not openable."""
        now = self._clock.now()
        return await self._db.write(lambda session: self._rotate(session, now))

    def _rotate(self, session: Session, now: datetime) -> tuple[int, int]:
        sealed = unreadable = 0
        for row in key_queries.all_keys(session):
            if self._vault.is_current(row.sealed):
                continue
            purpose = seal_purpose(row.workspace_id, row.user_id, row.provider, row.origin)
            try:
                row.sealed = self._vault.seal(self._vault.open(row.sealed, purpose), purpose)
            except CannotOpen as error:
                log.error("key cannot be opened", action="key_unreadable", key=row.id, error=str(error))
                unreadable += 1
                continue
            row.updated_at = now
            session.add(row)
            sealed += 1
        return sealed, unreadable

    def choose(self, session: Session, workspace_id: int, user_id: int | None, provider: str) -> Choice:
        """Chooses the key that pays for a run's calls."""
        configured = self.providers.get(provider)
        if configured is None:
            return Choice(SYSTEM)
        stored = key_queries.usable(session, workspace_id, user_id, provider)
        if not stored and self._policy.system_for_all and self._policy.token_provider != provider:
            return Choice(SYSTEM)
        workspace, person, owner = key_queries.names(session, workspace_id, user_id)
        if user_id is not None and (own_key := stored.get(user_id)) is not None:
            return Choice(Payer(PayerKind.USER, person, f"{STORED}{own_key}"))
        if user_id is not None and self._has_token(session, user_id, provider):
            return Choice(Payer(PayerKind.USER, person, f"{SIGNED_IN}{user_id}"))
        if (shared := stored.get(OF_WORKSPACE)) is not None:
            return Choice(Payer(PayerKind.WORKSPACE, workspace, f"{STORED}{shared}"))
        if owner or self._policy.system_for_all or not (configured.key_needed or configured.has_key(self.directory.env)):
            return Choice(SYSTEM)
        sentence = f"there is no key for {provider} that this run may use: enter your own, or ask an admin for one"
        return Choice(SYSTEM, sentence)

    async def secret(self, payer: Payer, provider: Provider) -> str:
        if payer.key_id.startswith(SIGNED_IN):
            token = await self._user_token(int(payer.key_id.removeprefix(SIGNED_IN)))
            if not token:
                raise _refused(f"the sign-in of {payer.name} has ended; sign in again, or enter a key")
            return token
        key_id = int(payer.key_id.removeprefix(STORED))
        try:
            row = await self._db.read(lambda session: key_queries.get(session, key_id))
        except DatabaseUnavailable as error:
            sentence = f"the database cannot be used now: {error}"
            raise GatewayError(503, Code.UNAVAILABLE, sentence, retry_after_s=2) from error
        if row is None:
            raise _refused(f"the key of {payer.name} for {provider.name} was removed; start the run again")
        if row.origin != origin_of(provider.base_url):
            raise _refused(
                f"the key of {payer.name} was given for {row.origin}, but {provider.name} has another address now"
            )
        try:
            return self._vault.open(row.sealed, seal_purpose(row.workspace_id, row.user_id, row.provider, row.origin))
        except CannotOpen as error:
            raise _refused(f"the key of {payer.name} for {provider.name} cannot be opened: {error}") from error

    def _has_token(self, session: Session, user_id: int, provider: str) -> bool:
        if self._policy.token_provider != provider:
            return False
        return login_queries.with_access_token(session, user_id, self._clock.now()) is not None


def holder_id(holder: Holder, user_id: int | None, scope: Scope) -> int:
    """The holder of a key that this caller submits."""
    if holder is Holder.WORKSPACE and not scope.allows(Scope.ADMIN):
        raise Forbidden("Only admins of the workspace can set its keys; set your own with holder `user`.")
    if holder is Holder.USER and user_id is None:
        raise Invalid("holder: you are not signed in as a user, so the key must be the workspace's (`workspace`)")
    return OF_WORKSPACE if holder is Holder.WORKSPACE or user_id is None else user_id


def origin_of(url: str) -> str:
    """Scheme, host and port, to which a key may be sent."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Invalid("base_url: it is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid("base_url: it must be an http or https address")
    return f"{parts.scheme}://{parts.hostname}:{port or (443 if parts.scheme == 'https' else 80)}"


def seal_purpose(workspace_id: int, user_id: int, provider: str, origin: str) -> str:
    """What a sealed key is bound to: it cannot be opened for another holder, provider or origin."""
    return f"provider key {workspace_id} {user_id} {provider} {origin}"


def _refused(sentence: str) -> GatewayError:
    return GatewayError(401, Code.PROVIDER_KEY_REFUSED, sentence)
