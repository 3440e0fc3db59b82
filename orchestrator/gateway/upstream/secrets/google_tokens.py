"""Access tokens of Google Cloud, bought with a service account's key and refreshed before they expire.

The key never leaves the process: it signs a statement, and the statement is exchanged for a token of an hour
(https://developers.google.com/identity/protocols/oauth2/service-account#httprest). The one module besides sign-in that
imports `joserfc`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from orchestrator.outbound.addresses import AddressRefused
from orchestrator.system.clock import Clock

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIFETIME_S = 3600
REFRESH_BEFORE_S = 300.0
TIMEOUT_S = 20.0
MAX_BYTES = 64 << 10


class NoToken(Exception):
    """No token could be had; the message says why, without secrets. `passing`: it may work later."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


@dataclass(frozen=True)
class ServiceAccount:
    email: str
    private_key: str = field(repr=False)
    key_id: str
    token_url: str

    @property
    def secrets(self) -> tuple[str, ...]:
        body = [line for line in self.private_key.splitlines() if line and not line.startswith("-----")]
        return (self.private_key, *body)


def service_account(key: str) -> ServiceAccount | None:
    """The account in a key file's text; None if the key is something else. Raises `ValueError` with a sentence."""
    if not key.lstrip().startswith("{"):
        return None
    try:
        said = json.loads(key)
        parts = [said[name] for name in ("client_email", "private_key", "private_key_id", "token_uri")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("it is not the JSON key of a Google service account") from error
    if not all(isinstance(part, str) and part for part in parts) or said.get("type") != "service_account":
        raise ValueError("it is not the JSON key of a Google service account")
    url = urlsplit(parts[3])
    if url.scheme != "https" and url.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise ValueError("its token_uri must be an https address")
    return ServiceAccount(*parts)


class GoogleTokens:
    """Tokens by account. `transport` makes the way to a host, by the rules of the provider's network."""

    def __init__(self, transport: Callable[[str], httpx.AsyncBaseTransport], clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._tokens: dict[str, tuple[str, float]] = {}
        self._buying = asyncio.Lock()

    async def token(self, account: ServiceAccount) -> str:
        """A token that is good for some minutes. Raises `NoToken`."""
        name = hashlib.sha256(f"{account.email} {account.private_key}".encode()).hexdigest()
        async with self._buying:
            token, until = self._tokens.get(name, ("", 0.0))
            if until - REFRESH_BEFORE_S < self._clock.monotonic():
                token, lifetime_s = await self._bought(account)
                self._tokens[name] = token, self._clock.monotonic() + lifetime_s
        return token

    def forget(self) -> None:
        self._tokens.clear()

    async def _bought(self, account: ServiceAccount) -> tuple[str, float]:
        host = urlsplit(account.token_url).hostname or ""
        form = {"grant_type": GRANT, "assertion": await asyncio.to_thread(self._assertion, account)}
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                httpx.AsyncClient(transport=self._transport(host), timeout=TIMEOUT_S) as client,
            ):
                response = await client.post(account.token_url, data=form, headers={"user-agent": "benchyard"})
        except (httpx.HTTPError, AddressRefused, TimeoutError, OSError) as error:
            raise NoToken(f"{host} gave no token: {type(error).__name__}: {error}", passing=True) from error
        if response.status_code != httpx.codes.OK:
            status = response.status_code
            passing = status in (408, 429) or status >= 500
            raise NoToken(f"{host} refused the service account {account.email}: {status} {_why(response)}", passing=passing)
        try:
            answer = response.json()
            token, lifetime_s = str(answer["access_token"]), float(answer.get("expires_in", LIFETIME_S))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NoToken(f"{host} gave no token that can be read") from error
        return token, lifetime_s

    def _assertion(self, account: ServiceAccount) -> str:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import RSAKey

        now = int(self._clock.now().timestamp())
        claims = {
            "iss": account.email,
            "scope": SCOPE,
            "aud": account.token_url,
            "iat": now,
            "exp": now + LIFETIME_S,
        }
        try:
            key = RSAKey.import_key(account.private_key)
            return jwt.encode({"alg": "RS256", "kid": account.key_id}, claims, key)
        except (JoseError, ValueError, TypeError) as error:
            raise NoToken(f"the private key of the service account {account.email} cannot be used") from error


def _why(response: httpx.Response) -> str:
    try:
        said = response.json()
        return str(said.get("error_description") or said.get("error") or "")[:300]
    except (ValueError, AttributeError):
        return ""
