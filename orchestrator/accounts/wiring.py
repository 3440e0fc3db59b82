"""Wires up accounts: the identity provider if one is configured, sessions, members."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from orchestrator.accounts.service import Members
from orchestrator.accounts.vault import Vault
from orchestrator.db.session import Database
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.limits.service import Limits
from orchestrator.provider_keys.service import KeyPolicy, ProviderKeys
from orchestrator.settings import Settings
from orchestrator.sign_in.oidc import Client, Provider
from orchestrator.sign_in.service import CommandLines, SignIn
from orchestrator.sign_in.sessions import SessionLifetime, Sessions
from orchestrator.system.clock import Clock
from orchestrator.tokens.service import Tokens


@dataclass(frozen=True)
class Accounts:
    sessions: Sessions
    members: Members
    command_lines: CommandLines
    provider: Provider | None
    sign_in: SignIn | None
    """None without an identity provider: people then sign in with tokens."""
    keys: ProviderKeys
    limits: Limits
    tokens: Tokens


def client_of(settings: Settings) -> Client | None:
    if not settings.oidc_issuer or not settings.oidc_client_id:
        return None
    secret = settings.oidc_client_secret.get_secret_value() if settings.oidc_client_secret else None
    if secret is None and settings.oidc_client_secret_file is not None:
        secret = settings.oidc_client_secret_file.read_text().strip()
    scopes = " ".join(dict.fromkeys(f"{settings.oidc_scopes} {settings.oidc_model_scope or ''}".split()))
    return Client(settings.oidc_issuer, settings.oidc_client_id, secret or None, scopes, settings.oidc_allow_http)


@asynccontextmanager
async def open_accounts(
    settings: Settings, db: Database, clock: Clock, vault: Vault, providers: ProviderDirectory
) -> AsyncIterator[Accounts]:
    client = client_of(settings)
    provider = Provider(client, clock) if client else None
    life = SessionLifetime(timedelta(seconds=settings.session_idle_s), timedelta(seconds=settings.session_max_s))
    sessions = Sessions(db, clock, vault, life, provider, settings.oidc_model_scope)
    policy = KeyPolicy(settings.system_keys == "everyone", settings.oidc_model_scope and settings.oidc_model_provider)
    try:
        yield Accounts(
            sessions,
            Members(db, clock),
            CommandLines(clock),
            provider,
            SignIn(db, clock, provider, settings.oidc_new_users) if provider else None,
            ProviderKeys(db, clock, vault, providers, policy, sessions.access_token),
            Limits(db, clock),
            Tokens(db, clock),
        )
    finally:
        if provider is not None:
            await provider.close()
