"""How one request shows who pays: a key in a header, a signature of AWS, or a token of Google bought with a key.

`credentials_of` is asked before each request, because tokens are refreshed and files rotated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.gateway.upstream.kinds.table import Auth, Kind
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.gateway.upstream.secrets.aws_signing import AccessKeys, access_keys, signature_headers
from orchestrator.gateway.upstream.secrets.google_tokens import GoogleTokens, service_account
from orchestrator.gateway.upstream.secrets.scrubbing import SECRET_CHARS
from runner.contract.run_spec import Protocol


@dataclass(frozen=True)
class Credentials:
    """`secrets` may appear nowhere in clear."""

    fixed: Mapping[str, str] = field(default_factory=dict, repr=False)
    keys: AccessKeys | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def headers(self, method: str, url: str, content: bytes = b"") -> dict[str, str]:
        """Raises `RuntimeError` if it cannot be signed here."""
        return dict(self.fixed) if self.keys is None else signature_headers(self.keys, method, url, content)


async def credentials_of(provider: Provider, protocol: Protocol, key: str, tokens: GoogleTokens) -> Credentials:
    """Raises `NoToken`, or `ValueError` with a sentence if the key cannot be right."""
    if provider.kind.auth is Auth.AWS and (keys := access_keys(key)) is not None:
        return Credentials(keys=keys, secrets=_long(key, *keys.secrets))
    if provider.kind.auth is Auth.GOOGLE and (account := service_account(key)) is not None:
        token = await tokens.token(account)
        return Credentials({"authorization": f"Bearer {token}"}, secrets=_long(token, *account.secrets))
    return Credentials(provider.key_headers(protocol, key), secrets=_long(key))


def one_line(kind: Kind, key: str) -> str:
    """The key of a service account without the line breaks of its file; any other key as it is."""
    if kind.auth is not Auth.GOOGLE or not key.startswith("{"):
        return key
    try:
        return json.dumps(json.loads(key), separators=(",", ":"))
    except (ValueError, RecursionError):
        return key


def key_problem(kind: Kind, key: str) -> str | None:
    """What is wrong with a key that was entered for this kind of server, in a sentence; None if nothing is seen."""
    if kind.auth is Auth.GOOGLE:
        try:
            service_account(key)
        except ValueError as error:
            return str(error)
    if kind.auth is Auth.AWS and key.startswith(("AKIA", "ASIA")) and access_keys(key) is None:
        return "access keys of AWS are given as ACCESS_KEY_ID:SECRET_ACCESS_KEY, temporary ones with :SESSION_TOKEN"
    return None


def _long(*secrets: str) -> tuple[str, ...]:
    return tuple(secret for secret in secrets if len(secret) >= SECRET_CHARS)
