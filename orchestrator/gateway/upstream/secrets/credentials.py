"""Whose key pays for a call: the installation's, a workspace's, or a user's own, which may be the access token from their
identity provider. The payer is known before a call waits for its turn, because limits are per key; the secret is read
only when the call goes out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from orchestrator.gateway.upstream.providers import Provider


class PayerKind(StrEnum):
    SYSTEM = "system"  #: the key in the service's settings
    WORKSPACE = "workspace"  #: a key that the workspace's admins entered
    USER = "user"  #: the user's own key or access token


@dataclass(frozen=True)
class Payer:
    """`key_id` tells keys of one provider apart; `name` is the user's or workspace's name."""

    kind: PayerKind = PayerKind.SYSTEM
    name: str = ""
    key_id: str = ""


SYSTEM = Payer()


class KeySource(Protocol):
    async def secret(self, payer: Payer, provider: Provider) -> str:
        """The current secret; never for another origin than it was entered for. Raises `GatewayError`."""


class NoKeys:
    """For services that have only the keys in their settings."""

    async def secret(self, payer: Payer, provider: Provider) -> str:
        raise LookupError(f"there is no key {payer.key_id}")
