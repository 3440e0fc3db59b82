"""The providers, read from environment variables. Pure: a mapping in, frozen values out; no key is read here.

`anthropic` and `openai` always exist and use their usual variables (`ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`,
`OPENAI_API_KEY`, `OPENAI_BASE_URL`). Any `BENCHYARD_PROVIDER_<NAME>_BASE_URL` adds an OpenAI-compatible one. Every key may
be in a file instead, named by the same variable with `_FILE`. What a provider answers is stored without its secrets
(`scrubbed`).
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from orchestrator.outbound.addresses import refusal
from orchestrator.startup import BadConfiguration
from runner.contract.run_spec import Protocol

_NAMED = re.compile(r"BENCHYARD_PROVIDER_([A-Z0-9_]+)_BASE_URL")
_OPENAI_PROTOCOLS = frozenset({Protocol.OPENAI_CHAT, Protocol.OPENAI_RESPONSES})
_TRUE = frozenset({"1", "true", "yes", "on"})


class BadProvider(BadConfiguration):
    """A provider's variables make no sense; the message names the variable."""


@dataclass(frozen=True)
class KeyRef:
    """Where a key is stored, never the key itself."""

    variable: str
    file: Path | None = None

    def read(self, env: Mapping[str, str]) -> str:
        """The current key; files may be rotated. Empty if there is none."""
        if self.file is not None:
            return self.file.read_text().strip()
        return env.get(self.variable, "").strip()


@dataclass(frozen=True)
class Provider:
    """One provider. Its key goes only to the origin of its base URL."""

    name: str
    protocols: frozenset[Protocol]
    base_url: str
    key: KeyRef
    key_needed: bool
    allow_private: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    list_without_key: bool = False

    def configured(self, env: Mapping[str, str]) -> bool:
        """Whether it has a key or needs none."""
        return not self.key_needed or self.has_key(env)

    def has_key(self, env: Mapping[str, str]) -> bool:
        return self.key.file is not None or bool(env.get(self.key.variable, "").strip())

    def address_rule(self, address: str) -> str | None:
        """Why an address that its host name resolves to may not be called, or None."""
        return refusal(address, allow_private=self.allow_private)

    @property
    def origin(self) -> tuple[str, str, int]:
        parts = urlsplit(self.base_url)
        return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    def url(self, protocol: Protocol, path: str) -> str:
        """The URL for a protocol's path: Anthropic's base URL lacks `/v1`, OpenAI's includes it."""
        return self.base_url + (path if protocol is Protocol.ANTHROPIC else path.removeprefix("/v1"))


def providers_from_env(env: Mapping[str, str]) -> dict[str, Provider]:
    """All configured providers by name."""
    providers = {
        "anthropic": _provider(
            env, "anthropic", "ANTHROPIC", "https://api.anthropic.com", frozenset({Protocol.ANTHROPIC}), key_needed=True
        ),
        "openai": _provider(env, "openai", "OPENAI", "https://api.openai.com/v1", _OPENAI_PROTOCOLS, key_needed=True),
    }
    for variable in sorted(env):
        match = _NAMED.fullmatch(variable)
        if match is None or not env[variable].strip():
            continue
        name = match[1].lower().replace("_", "-")
        if name in ("demo", "anthropic", "openai"):
            raise BadProvider(f"{variable}: the name {name} is taken")
        prefix = f"BENCHYARD_PROVIDER_{match[1]}"
        providers[name] = _provider(env, name, prefix, "", _protocols(env, prefix), key_needed=False)
    return providers


def _provider(
    env: Mapping[str, str], name: str, prefix: str, default_url: str, protocols: frozenset[Protocol], *, key_needed: bool
) -> Provider:
    configured_url = env.get(f"{prefix}_BASE_URL", "").strip()
    base_url = (configured_url or default_url).rstrip("/")
    if protocols == frozenset({Protocol.ANTHROPIC}):
        base_url = base_url.removesuffix("/v1")
    _check_url(f"{prefix}_BASE_URL", base_url)
    file = env.get(f"{prefix}_API_KEY_FILE", "").strip()
    variable = f"BENCHYARD_PROVIDER_{name.upper().replace('-', '_')}"
    return Provider(
        name=name,
        protocols=protocols,
        base_url=base_url,
        key=KeyRef(f"{prefix}_API_KEY", Path(file) if file else None),
        key_needed=key_needed and not configured_url,
        allow_private=_loopback(base_url) or env.get(f"{variable}_ALLOW_PRIVATE", "").strip().lower() in _TRUE,
        headers=_headers(env, f"{variable}_HEADERS"),
        list_without_key=env.get(f"{variable}_LIST_WITHOUT_KEY", "").strip().lower() in _TRUE,
    )


def _protocols(env: Mapping[str, str], prefix: str) -> frozenset[Protocol]:
    text = env.get(f"{prefix}_PROTOCOLS", "").strip()
    try:
        protocols = frozenset(Protocol(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise BadProvider(f"{prefix}_PROTOCOLS: {error}; choose from {', '.join(Protocol)}") from error
    if Protocol.ANTHROPIC in protocols and len(protocols) > 1:
        raise BadProvider(f"{prefix}_PROTOCOLS: anthropic and OpenAI protocols need a provider each: their base URLs differ")
    return protocols or _OPENAI_PROTOCOLS


def _headers(env: Mapping[str, str], variable: str) -> dict[str, str]:
    text = env.get(variable, "").strip()
    try:
        headers = json.loads(text) if text else {}
    except ValueError as error:
        raise BadProvider(f"{variable} must be a JSON object of texts") from error
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise BadProvider(f"{variable} must be a JSON object of texts")
    return headers


def _check_url(variable: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        raise BadProvider(f"{variable} is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_ok:
        raise BadProvider(f"{variable} must be an http or https address")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadProvider(f"{variable} must have no user, query or fragment: the key has its own variable")


def _loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


MASK = "[key]"
SECRET_CHARS = 8
"""Shorter values are switches or placeholder keys, and would match in any answer."""
PUBLIC_HEADERS = frozenset({"http-referer", "referer", "user-agent", "x-openrouter-title", "x-title"})
SCHEMES = frozenset({"api-key", "apikey", "basic", "bearer", "key", "token"})


def secrets_in_headers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Possible secrets in the headers that an operator set: their values, and what follows a scheme like `Bearer`."""
    values = [value for name, value in headers.items() if name.lower() not in PUBLIC_HEADERS]
    parted = [value.partition(" ") for value in values]
    bare = [rest.strip() for scheme, _, rest in parted if scheme.lower() in SCHEMES]
    return tuple(value for value in (*values, *bare) if len(value) >= SECRET_CHARS)


def scrubbed(value: Any, secrets: Sequence[str]) -> Any:
    """The value without the secrets. Works on parsed values: JSON can spell a secret in many ways."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, list):
        return [scrubbed(item, secrets) for item in value]
    if isinstance(value, dict):
        return {scrubbed(name, secrets): scrubbed(item, secrets) for name, item in value.items()}
    return value


def clean_answer(message: dict[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    """Remove our key from an answer: some servers echo everything they receive."""
    text = json.dumps(message, ensure_ascii=False)
    long = [secret for secret in secrets if len(secret) >= SECRET_CHARS]
    if not any(secret in text or json.dumps(secret)[1:-1] in text for secret in long):
        return message
    clean: dict[str, Any] = scrubbed(message, long)
    return clean


def storable(text: str) -> str:
    """The text without what databases reject: lone surrogates and NUL characters."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")
