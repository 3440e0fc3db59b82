"""A user's own access token as their key: kept only if it is good for it, refreshed once however many ask, gone with the
sign-in, and sealed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import Session

from orchestrator.accounts.tables import User
from orchestrator.accounts.vault import Vault
from orchestrator.db.session import Database
from orchestrator.gateway.edge.errors import GatewayError
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.provider_keys.service import KeyPolicy, ProviderKeys
from orchestrator.sign_in.claims import Identity
from orchestrator.sign_in.oidc import Refused, TokenGrant
from orchestrator.sign_in.sessions import SessionLifetime, Sessions
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.anyio

ADA = Identity("https://id.example", "ada", "ada@x", "Ada")
LIFE = SessionLifetime(timedelta(days=1), timedelta(days=7))
ENV = {"BENCHYARD_PROVIDER_LAB_BASE_URL": "http://127.0.0.1:9/v1"}


@dataclass
class CountingProvider:
    """Gives a new token for each refresh token, which is good for one use."""

    clock: ManualClock
    used: list[str] = field(default_factory=list)
    scopes: frozenset[str] | None = frozenset({"openid", "models"})

    def grant(self, number: int) -> TokenGrant:
        until = self.clock.now() + timedelta(minutes=10)
        return TokenGrant(ADA, until, f"access-{number}", f"refresh-{number}", "id", self.scopes)

    async def refresh(self, token: str, known: Identity) -> TokenGrant:
        await asyncio.sleep(0.01)
        if token in self.used:
            raise Refused("invalid_grant")
        self.used.append(token)
        return self.grant(len(self.used))


@dataclass
class World:
    db: Database
    clock: ManualClock
    provider: CountingProvider
    user: User

    def sessions(self, scope: str | None = "models", *keys: bytes) -> Sessions:
        provider: Any = self.provider
        return Sessions(self.db, self.clock, Vault(keys or [b"k" * 32]), LIFE, provider, scope)


@pytest.fixture
async def world(database: Database, clock: ManualClock) -> World:
    def add(session: Session) -> User:
        user = User(issuer=ADA.issuer, subject=ADA.subject, name="Ada", created_at=clock.now())
        session.add(user)
        session.flush()
        return user

    return World(database, clock, CountingProvider(clock), await database.write(add))


async def test_it_is_refreshed_once_and_pays_as_the_user(world: World) -> None:
    sessions, user_id = world.sessions(), world.user.id or 0
    await sessions.begin(world.user, world.provider.grant(0), agent="", address="")
    keys = ProviderKeys(
        world.db, world.clock, Vault([b"k" * 32]), ProviderDirectory(ENV), KeyPolicy(False, "lab"), sessions.access_token
    )
    chosen = await world.db.read(lambda session: keys.choose(session, 1, user_id, "lab"))
    assert (chosen.payer.kind, chosen.payer.name, chosen.refused) == ("user", "Ada", None)
    assert await keys.secret(chosen.payer, keys.providers["lab"]) == "access-0"
    elsewhere = await world.db.read(lambda session: keys.choose(session, 1, user_id, "openai"))
    assert "enter your own" in (elsewhere.refused or "")
    world.clock.advance(601)
    found = await asyncio.gather(*(sessions.access_token(user_id) for _ in range(20)))
    assert set(found) == {"access-1"}
    assert world.provider.used == ["refresh-0"]
    # Somebody else used the refresh token: the sign-in ends, and calls say so.
    world.provider.used.append("refresh-1")
    world.clock.advance(601)
    with pytest.raises(GatewayError, match="sign in again"):
        await keys.secret(chosen.payer, keys.providers["lab"])


@pytest.mark.parametrize(("scope", "granted"), [(None, frozenset({"models"})), ("models", frozenset({"openid"}))])
async def test_what_is_not_good_for_models_is_not_kept(world: World, scope: str | None, granted: frozenset[str]) -> None:
    sessions = world.sessions(scope)
    await sessions.begin(world.user, replace(world.provider.grant(0), scopes=granted), agent="", address="")
    assert await sessions.access_token(world.user.id or 0) is None


async def test_it_ends_with_the_sign_in_and_moves_to_a_new_master_key(world: World) -> None:
    sessions, user_id = world.sessions(), world.user.id or 0
    await sessions.begin(world.user, world.provider.grant(0), agent="", address="")
    assert await world.sessions("models", b"n" * 32).access_token(user_id) is None
    assert await world.sessions("models", b"n" * 32, b"k" * 32).seal_again() == (3, 0)
    assert await world.sessions("models", b"n" * 32).access_token(user_id) == "access-0"
    assert await sessions.seal_again() == (0, 3)
    await sessions.end_all(user_id)
    assert await sessions.access_token(user_id) is None
