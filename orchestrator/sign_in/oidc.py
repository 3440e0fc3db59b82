"""The client of the identity provider: discovery, code exchange, refresh, signing keys and their rotation, sign-out.

Every response is validated here. Other modules only see identities and `ProviderTrouble`, never an unchecked token. The
libraries for tokens are imported when somebody signs in: most installations have no identity provider.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import httpx

from orchestrator.outbound.transports import ProxiedTransport
from orchestrator.sign_in.claims import Identity, InvalidIdToken, identity_of
from orchestrator.system.clock import Clock

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Asymmetric signatures only, which nobody but the provider can make: neither `none` nor shared secrets."""
FRESH_S = 3600.0
KEYS_AGAIN_S = 10.0
"""A token with an unknown key triggers a reload of the keys, at most once in this time."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
PLAIN = re.compile(r"[A-Za-z0-9._~-]*")
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class ProviderTrouble(Exception):
    """The provider is unreachable or violates its discovery document."""


class Refused(Exception):
    """The provider rejected the code, the refresh token or the device. `code` is its error code."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code


@dataclass(frozen=True)
class Client:
    """This installation's registration at the provider."""

    issuer: str
    client_id: str
    client_secret: str | None
    scopes: str
    allow_http: bool = False


@dataclass(frozen=True)
class TokenGrant:
    """Tokens with a validated id token."""

    identity: Identity
    until: datetime | None
    access_token: str
    refresh_token: str | None
    id_token: str
    scopes: frozenset[str] | None = None
    """The scopes of the access token; None if the provider did not return any, which means the requested ones."""


@dataclass(frozen=True)
class Device:
    device_code: str
    user_code: str
    address: str
    whole_address: str | None
    interval_s: int
    expires_s: int


class Provider:
    def __init__(self, client: Client, clock: Clock, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.client = client
        self._clock = clock
        self._http = httpx.AsyncClient(transport=SmallAnswers(transport), timeout=TIMEOUT)
        self._metadata: dict[str, Any] | None = None
        self._metadata_until = 0.0
        self._keys: KeySet | None = None
        self._keys_since = 0.0

    async def close(self) -> None:
        await self._http.aclose()

    async def metadata(self) -> dict[str, Any]:
        """The discovery document, cached for an hour."""
        now = self._clock.monotonic()
        if self._metadata is None or now >= self._metadata_until:
            document = await self._document(f"{self.client.issuer.rstrip('/')}/.well-known/openid-configuration")
            if document.get("issuer") != self.client.issuer:
                raise ProviderTrouble(
                    f"its discovery document is for the issuer {str(document.get('issuer'))[:200]!r}; "
                    f"BENCHYARD_OIDC_ISSUER must be the same, to the last slash, and is {self.client.issuer!r}"
                )
            self._metadata, self._metadata_until = document, now + FRESH_S
        return self._metadata

    async def address(self, redirect_uri: str, *, state: str, nonce: str, verifier: str) -> str:
        """The URL at which the browser signs in."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # type: ignore[import-untyped]
        from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped]

        endpoint = await self._endpoint("authorization_endpoint")
        extra = {"prompt": "consent"} if "offline_access" in self.client.scopes.split() else {}
        url: str = prepare_grant_uri(
            endpoint,
            self.client.client_id,
            "code",
            redirect_uri,
            self.client.scopes,
            state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
            **extra,
        )
        return url

    async def redeem(self, code: str, redirect_uri: str, *, nonce: str, verifier: str) -> TokenGrant:
        """Exchanges a code for tokens. Raises `Refused` if the provider rejects it."""
        return await self._tokens(
            {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}, redirect_uri, nonce
        )

    async def refresh(self, refresh_token: str, identity: Identity) -> TokenGrant:
        """Gets new tokens for the same person. Raises `Refused` if the sign-in is no longer valid."""
        granted = await self._tokens({"grant_type": "refresh_token", "refresh_token": refresh_token}, None, None, identity)
        if (granted.identity.issuer, granted.identity.subject) != (identity.issuer, identity.subject):
            raise Refused("invalid_grant", "the refreshed token belongs to another user")
        return granted

    async def sign_out_address(self, id_token: str | None, after: str) -> str | None:
        """The URL that ends the browser's session at the provider, if it offers one."""
        endpoint = (await self.metadata()).get("end_session_endpoint")
        if not isinstance(endpoint, str):
            return None
        query = {"client_id": self.client.client_id, "post_logout_redirect_uri": after}
        if id_token:
            query["id_token_hint"] = id_token
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"

    async def ask_device(self) -> Device | None:
        """Starts a sign-in on another device; None if the provider does not support it."""
        endpoint = (await self.metadata()).get("device_authorization_endpoint")
        if not isinstance(endpoint, str):
            return None
        reply = await self._post(endpoint, {"client_id": self.client.client_id, "scope": self.client.scopes})
        try:
            return Device(
                device_code=str(reply["device_code"]),
                user_code=str(reply["user_code"]),
                address=str(reply["verification_uri"]),
                whole_address=reply.get("verification_uri_complete"),
                interval_s=int(reply.get("interval", 5)),
                expires_s=int(reply.get("expires_in", 600)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ProviderTrouble(f"its answer to a device is not complete ({error!r})") from error

    async def redeem_device(self, device_code: str) -> TokenGrant:
        """Raises `Refused` with `authorization_pending` or `slow_down` until the person has finished."""
        return await self._tokens({"grant_type": DEVICE_GRANT, "device_code": device_code}, None, None)

    async def _tokens(
        self, fields: dict[str, str], redirect_uri: str | None, nonce: str | None, earlier: Identity | None = None
    ) -> TokenGrant:
        endpoint = await self._endpoint("token_endpoint")
        if redirect_uri is not None:
            fields["redirect_uri"] = redirect_uri
        reply = await self._post(endpoint, fields)
        access, id_token = reply.get("access_token"), reply.get("id_token")
        if not isinstance(access, str) or not (isinstance(id_token, str) or (earlier and id_token is None)):
            raise ProviderTrouble("its answer contains no tokens; is `openid` among the scopes?")
        identity = earlier if id_token is None else await self._believed(id_token, nonce)
        assert identity is not None
        lifetime = reply.get("expires_in")
        until = None
        if isinstance(lifetime, int | float) and 0 < lifetime < 10**9:
            until = self._clock.now() + timedelta(seconds=lifetime)
        refresh = reply.get("refresh_token")
        scopes = reply.get("scope")
        return TokenGrant(
            identity,
            until,
            access,
            refresh if isinstance(refresh, str) else None,
            id_token or "",
            frozenset(scopes.split()) if isinstance(scopes, str) else None,
        )

    async def _believed(self, id_token: str, nonce: str | None) -> Identity:
        from joserfc import jwt
        from joserfc.errors import JoseError

        offered = (await self.metadata()).get("id_token_signing_alg_values_supported") or ["RS256"]
        allowed = [name for name in ALGORITHMS if name in offered]
        keys = await self._known_keys()
        for last in (False, True):
            try:
                token = jwt.decode(id_token, keys, algorithms=allowed)
                break
            except (JoseError, ValueError) as error:
                # The keys may have been rotated since they were loaded.
                if last or self._clock.monotonic() - self._keys_since < KEYS_AGAIN_S:
                    raise InvalidIdToken(f"its signature cannot be checked ({type(error).__name__})") from error
                keys = await self._known_keys(again=True)
        return identity_of(
            token.claims, issuer=self.client.issuer, client_id=self.client.client_id, nonce=nonce, now=self._clock.now()
        )

    async def _known_keys(self, *, again: bool = False) -> KeySet:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        now = self._clock.monotonic()
        if self._keys is None or again or now - self._keys_since > FRESH_S:
            document = await self._document(await self._endpoint("jwks_uri"))
            try:
                self._keys, self._keys_since = KeySet.import_key_set(document), now  # type: ignore[arg-type]
            except (JoseError, ValueError, KeyError, TypeError) as error:
                raise ProviderTrouble(f"its keys cannot be read ({type(error).__name__})") from error
        return self._keys

    async def _endpoint(self, name: str) -> str:
        address = (await self.metadata()).get(name)
        if not isinstance(address, str):
            raise ProviderTrouble(f"its discovery document names no {name}")
        self._check_scheme(address)
        return address

    def _check_scheme(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme == "https" or (parts.scheme == "http" and (self.client.allow_http or parts.hostname in LOOPBACK)):
            return
        raise ProviderTrouble(f"{url[:200]!r} is not https; BENCHYARD_OIDC_ALLOW_HTTP allows that in a closed network")

    async def _post(self, endpoint: str, fields: dict[str, str]) -> dict[str, Any]:
        from authlib.oauth2.auth import ClientAuth  # type: ignore[import-untyped]

        self._check_scheme(endpoint)
        offered = (await self.metadata()).get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        # Providers decode special characters in a basic-auth secret differently; in the body it is unambiguous.
        plain = PLAIN.fullmatch(f"{self.client.client_id}{self.client.client_secret}") is not None
        basic = "client_secret_basic" in offered and (plain or "client_secret_post" not in offered)
        method = "client_secret_basic" if basic else "client_secret_post"
        auth = ClientAuth(self.client.client_id, self.client.client_secret, method if self.client.client_secret else "none")
        headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
        url, headers, body = auth.prepare("POST", endpoint, headers, urlencode(fields))
        answer = await self._ask("POST", url, headers=headers, content=body)
        reply = _json(answer)
        if "error" in reply:
            raise Refused(str(reply["error"])[:100], str(reply.get("error_description", ""))[:300])
        if answer.status_code >= 400:
            raise ProviderTrouble(f"{urlsplit(endpoint).netloc} answered {answer.status_code}")
        return reply

    async def _document(self, url: str) -> dict[str, Any]:
        self._check_scheme(url)
        answer = await self._ask("GET", url, headers={"accept": "application/json"})
        if answer.status_code != 200:
            raise ProviderTrouble(f"{url[:200]} answered {answer.status_code}")
        return _json(answer)

    async def _ask(self, method: str, url: str, **options: Any) -> httpx.Response:
        try:
            async with asyncio.timeout(TIMEOUT.read):
                return await self._http.request(method, url, **options)
        except (httpx.HTTPError, TimeoutError) as error:
            raise ProviderTrouble(f"{urlsplit(url).netloc} cannot be reached ({_error_text(error)})") from error


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ProviderTrouble(f"{answer.request.url.host} answered {answer.status_code} without a JSON object")
    return document


def _error_text(error: Exception) -> str:
    return str(error)[:200] or type(error).__name__


MOST_BYTES = 512 * 1024
TIMEOUT = httpx.Timeout(10.0, connect=5.0)


class AnswerTooLarge(httpx.TransportError):
    """The response is larger than any legitimate document of a provider."""


class SmallAnswers(httpx.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncBaseTransport | None = None) -> None:
        self._inner = inner or ProxiedTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["accept-encoding"] = "identity"  # a compressed response may be large once decompressed
        response = await self._inner.handle_async_request(request)
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise AnswerTooLarge("the answer is compressed, which was not requested", request=request)
            body = b""
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > MOST_BYTES:
                    raise AnswerTooLarge(f"the answer is larger than {MOST_BYTES} bytes", request=request)
        finally:
            await response.aclose()
        return httpx.Response(
            response.status_code, headers=_without_framing(response.headers), content=body, request=request
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


def _without_framing(headers: httpx.Headers) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name not in ("content-length", "transfer-encoding")]
