"""What a provider is, and those of environment variables. Pure: a mapping in, frozen values out; no key is read here.

`anthropic` and `openai` always exist and use their usual variables (`ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`,
`OPENAI_API_KEY`, `OPENAI_BASE_URL`). Any `BENCHYARD_PROVIDER_<NAME>_BASE_URL` adds an OpenAI-compatible one, and a
`BENCHYARD_PROVIDER_<NAME>_KIND` one whose address is known. Every key may be in a file instead, named by the same variable
with `_FILE`.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, urlsplit

from orchestrator.gateway.upstream.kinds.table import GENERIC, KINDS, Auth, Dialect, Kind
from orchestrator.outbound.addresses import refusal
from orchestrator.startup import BadConfiguration
from runner.contract.run_spec import Protocol

_NAMED = re.compile(r"BENCHYARD_PROVIDER_([A-Z0-9_]+)_(?:BASE_URL|KIND)")
_OPENAI_PROTOCOLS = frozenset({Protocol.OPENAI_CHAT, Protocol.OPENAI_RESPONSES})
_TRUE = frozenset({"1", "true", "yes", "on"})


class BadProvider(BadConfiguration):
    """A provider's variables make no sense; the message names the variable."""


@dataclass(frozen=True)
class KeyRef:
    """Where a key is stored, never the key itself. `opened` reads it from the vault."""

    variable: str
    file: Path | None = None
    opened: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    def read(self, env: Mapping[str, str]) -> str:
        """The current key; files may be rotated. Empty if there is none. Raises `OSError` or `ValueError`."""
        if self.opened is not None:
            return self.opened()
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
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    list_without_key: bool = False
    kind: Kind = GENERIC
    list_path: str = ""
    api_version: str = ""
    proxy: str = ""
    """The proxy for this provider only; empty: that of the environment."""
    ca_bundle: str = ""
    """A file with further certificate authorities, for this provider only."""
    client_cert: str = ""
    """A file with the certificate that we show the server, and its private key if `client_key` names no file."""
    client_key: str = ""
    revision: str = ""
    """Differs after every change of a stored provider."""

    def configured(self, env: Mapping[str, str]) -> bool:
        """Whether it has a key or needs none."""
        return not self.key_needed or self.has_key(env)

    def has_key(self, env: Mapping[str, str]) -> bool:
        if self.key.opened is not None or self.key.file is not None:
            return True
        return bool(env.get(self.key.variable, "").strip())

    @property
    def has_own_tls(self) -> bool:
        return bool(self.ca_bundle or self.client_cert)

    def address_rule(self, address: str) -> str | None:
        """Why an address that its host name resolves to may not be called, or None."""
        return refusal(address, allow_private=self.allow_private)

    @property
    def identity(self) -> str:
        """The server and the way it is asked: an answer bought elsewhere, or in another form, is not this provider's."""
        form = [] if self.kind is GENERIC else [self.kind.name, self.api_version or self.kind.api_version]
        return json.dumps([self.base_url, sorted(self.headers.items()), *form])

    @property
    def origin(self) -> tuple[str, str, int]:
        parts = urlsplit(self.base_url)
        return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    def url(self, protocol: Protocol, path: str, model: str = "", *, whole: bool = False) -> str:
        """The URL for a call: Anthropic's base URL lacks `/v1`, OpenAI's includes it. The path of some kinds has the model
        in it, or is another for an answer in one piece (`whole`)."""
        if self.path_has_model and model:
            return self.base_url + self._filled((whole and self.kind.whole_path) or self.kind.chat_path, model)
        if protocol is Protocol.ANTHROPIC:
            return self.base_url + path
        if protocol is Protocol.OPENAI_CHAT:
            return self.base_url + self._filled(self.kind.chat_path, model)
        prefix = self.kind.chat_path.removesuffix("/chat/completions")
        return self.base_url + prefix + path.removeprefix("/v1")

    @property
    def list_url(self) -> str:
        """Where its models are listed."""
        return self.base_url + self._filled(self.list_path or self._usual_list_path, "")

    @property
    def lists_models(self) -> bool:
        return bool(self.list_path or self.kind.list_path)

    @property
    def path_has_model(self) -> bool:
        return "{model}" in self.kind.chat_path

    def key_headers(self, protocol: Protocol, key: str) -> dict[str, str]:
        """The headers that carry the key."""
        if not key:
            return {}
        if self.kind.auth is Auth.API_KEY:
            return {"api-key": key}
        if self.kind.auth is not Auth.USUAL:
            return {"authorization": f"Bearer {key}"}
        return {"x-api-key": key} if protocol is Protocol.ANTHROPIC else {"authorization": f"Bearer {key}"}

    @property
    def _usual_list_path(self) -> str:
        usual = Protocol.ANTHROPIC in self.protocols and self.kind.dialect is Dialect.PLAIN
        return "/v1/models" if usual else self.kind.list_path

    def _filled(self, path: str, model: str) -> str:
        version = quote(self.api_version or self.kind.api_version, safe="")
        return path.replace("{model}", quote(model, safe="")).replace("{api_version}", version)


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
        kind = _kind(env, f"{prefix}_KIND")
        if not kind.base_url and not env.get(f"{prefix}_BASE_URL", "").strip():
            raise BadProvider(f"{variable}: servers of this kind have no common address; set {prefix}_BASE_URL")
        protocols = _protocols(env, prefix) or kind.protocols
        providers[name] = replace(
            _provider(env, name, prefix, kind.base_url, protocols, key_needed=kind.key_needed),
            kind=kind,
            list_without_key=kind.list_without_key or env.get(f"{prefix}_LIST_WITHOUT_KEY", "").strip().lower() in _TRUE,
            list_path=_list_path(env, f"{prefix}_LIST_PATH"),
            api_version=env.get(f"{prefix}_API_VERSION", "").strip(),
        )
    return providers


def _provider(
    env: Mapping[str, str], name: str, prefix: str, default_url: str, protocols: frozenset[Protocol], *, key_needed: bool
) -> Provider:
    configured_url = env.get(f"{prefix}_BASE_URL", "").strip()
    base_url = (configured_url or default_url).rstrip("/")
    if protocols == frozenset({Protocol.ANTHROPIC}):
        base_url = base_url.removesuffix("/v1")
    check_url(f"{prefix}_BASE_URL", base_url)
    file = env.get(f"{prefix}_API_KEY_FILE", "").strip()
    variable = f"BENCHYARD_PROVIDER_{name.upper().replace('-', '_')}"
    return Provider(
        name=name,
        protocols=protocols,
        base_url=base_url,
        key=KeyRef(f"{prefix}_API_KEY", Path(file) if file else None),
        key_needed=key_needed and not configured_url,
        allow_private=is_loopback(base_url) or env.get(f"{variable}_ALLOW_PRIVATE", "").strip().lower() in _TRUE,
        headers=_headers(env, f"{variable}_HEADERS"),
        list_without_key=env.get(f"{variable}_LIST_WITHOUT_KEY", "").strip().lower() in _TRUE,
        proxy=env.get(f"{variable}_PROXY", "").strip(),
        ca_bundle=env.get(f"{variable}_CA_BUNDLE", "").strip(),
        client_cert=env.get(f"{variable}_CLIENT_CERT", "").strip(),
        client_key=env.get(f"{variable}_CLIENT_KEY", "").strip(),
    )


def _kind(env: Mapping[str, str], variable: str) -> Kind:
    name = env.get(variable, "").strip()
    if name and name not in KINDS:
        raise BadProvider(f"{variable}: there is no kind {name}; choose from {', '.join(sorted(KINDS))}")
    return KINDS[name] if name else GENERIC


def _protocols(env: Mapping[str, str], prefix: str) -> frozenset[Protocol]:
    text = env.get(f"{prefix}_PROTOCOLS", "").strip()
    try:
        protocols = frozenset(Protocol(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise BadProvider(f"{prefix}_PROTOCOLS: {error}; choose from {', '.join(Protocol)}") from error
    if Protocol.ANTHROPIC in protocols and len(protocols) > 1:
        raise BadProvider(f"{prefix}_PROTOCOLS: anthropic and OpenAI protocols need a provider each: their base URLs differ")
    return protocols


def _list_path(env: Mapping[str, str], variable: str) -> str:
    path = env.get(variable, "").strip()
    if path and not path.startswith("/"):
        raise BadProvider(f"{variable} must begin with a slash, such as /models: it is added to the base URL")
    return path


def _headers(env: Mapping[str, str], variable: str) -> dict[str, str]:
    text = env.get(variable, "").strip()
    try:
        headers = json.loads(text) if text else {}
    except ValueError as error:
        raise BadProvider(f"{variable} must be a JSON object of texts") from error
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise BadProvider(f"{variable} must be a JSON object of texts")
    return headers


def check_url(variable: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        raise BadProvider(f"{variable} is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_ok:
        raise BadProvider(f"{variable} must be an http or https address")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadProvider(f"{variable} must have no user, query or fragment: the key has its own variable")


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
