"""What a stored provider consists of, and the rules for it. Pure: values in, a `Provider` or `Invalid` out.

Settings are not secret and are stored as they are. Secrets (the key, values of headers, credentials of the proxy) are
sealed for the provider's name and origin: a provider that moves to another origin needs them anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from orchestrator.errors import Invalid
from orchestrator.gateway.providers.directory import RESERVED
from orchestrator.gateway.upstream.connections.network_settings import proxies_of, tls_of
from orchestrator.gateway.upstream.kinds.table import GENERIC, KINDS
from orchestrator.gateway.upstream.providers import BadProvider, KeyRef, Provider, check_url, is_loopback
from orchestrator.gateway.upstream.secrets.authorization import key_problem
from orchestrator.outbound.proxies import address_of
from orchestrator.startup import BadConfiguration
from runner.contract.run_spec import Protocol

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,98}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
OURS_TO_SEND = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-type"})
SHORTEST_HINTED = 12


@dataclass(frozen=True)
class Secrets:
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxy_login: str = field(default="", repr=False)
    """`user:password`, quoted as in an address."""

    @property
    def hint(self) -> str:
        shown = len(self.key) >= SHORTEST_HINTED and not self.key.startswith("{")
        return self.key[-4:] if shown else ""

    def __bool__(self) -> bool:
        return bool(self.key or self.headers or self.proxy_login)


@dataclass(frozen=True)
class Definition:
    """The settings of one provider. Empty: that of the kind, or none."""

    kind: str = GENERIC.name
    base_url: str = ""
    protocols: tuple[str, ...] = ()
    key_variable: str = ""
    key_file: str = ""
    key_hint: str = ""
    header_names: tuple[str, ...] = ()
    proxy: str = ""
    ca_bundle: str = ""
    client_cert: str = ""
    client_key: str = ""
    allow_private: bool = False
    list_path: str = ""
    list_without_key: bool = False
    api_version: str = ""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Reads what was stored; a newer version may have stored more."""
        known = {item.name for item in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items() if name in known
        }
        return cls(**values)

    def stored(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def address(self) -> str:
        kind = KINDS.get(self.kind, GENERIC)
        url = (self.base_url or kind.base_url).rstrip("/")
        return url.removesuffix("/v1") if self._protocols() == {Protocol.ANTHROPIC} else url

    def _protocols(self) -> frozenset[Protocol]:
        kind = KINDS.get(self.kind, GENERIC)
        return frozenset(Protocol(name) for name in self.protocols) or kind.protocols

    def provider(
        self, name: str, secrets: Secrets, *, revision: str = "", opened: Callable[[], str] | None = None
    ) -> Provider:
        """The provider as the gateway uses it; `opened` reads the key from the vault."""
        kind = KINDS.get(self.kind, GENERIC)
        return Provider(
            name=name,
            protocols=self._protocols(),
            base_url=self.address,
            key=KeyRef(self.key_variable, Path(self.key_file) if self.key_file else None, opened),
            key_needed=kind.key_needed and not self.base_url,
            allow_private=self.allow_private,
            headers=dict(secrets.headers),
            list_without_key=self.list_without_key or kind.list_without_key,
            kind=kind,
            list_path=self.list_path,
            api_version=self.api_version,
            proxy=with_login(self.proxy, secrets.proxy_login),
            ca_bundle=self.ca_bundle,
            client_cert=self.client_cert,
            client_key=self.client_key,
            revision=revision,
        )


def check(name: str, definition: Definition, secrets: Secrets, env: Mapping[str, str], data_dir: Path) -> None:
    """Raises `Invalid` with the field and what to do."""
    if not NAME.fullmatch(name) or name in RESERVED:
        raise Invalid("name: use lower case letters, digits, - and _; demo and kinds are taken")
    if definition.kind not in KINDS:
        raise Invalid(f"kind: there is no kind {definition.kind}; choose from {', '.join(sorted(KINDS))}")
    if not definition.address:
        raise Invalid(f"base_url: servers of the kind {definition.kind} have no common address; give one")
    try:
        check_url("base_url", definition.address)
        if Protocol.ANTHROPIC in definition.protocols and len(set(definition.protocols)) > 1:
            raise Invalid("protocols: anthropic and OpenAI protocols need a provider each: their base URLs differ")
        _check_address(definition)
        _check_key(definition, secrets, data_dir)
        _check_headers(secrets.headers)
        if definition.list_path and not definition.list_path.startswith("/"):
            raise Invalid("list_path: it must begin with a slash, such as /models: it is added to the base URL")
        provider = definition.provider(name, secrets)
        proxies_of(provider, env)
        tls_of(provider, env)
    except BadProvider as error:
        raise Invalid(str(error)) from error
    except BadConfiguration as error:
        raise Invalid(f"{error}") from error


def _check_address(definition: Definition) -> None:
    host = urlsplit(definition.address).hostname or ""
    address = address_of(host)
    if is_loopback(definition.address) and not definition.allow_private:
        raise Invalid("allow_private: the base URL is on this machine; set it to true if that is meant")
    if address is not None:
        why = definition.provider("x", Secrets()).address_rule(str(address))
        if why is not None:
            hint = "" if definition.allow_private else "; set allow_private to true if that is meant"
            raise Invalid(f"base_url: {host} may not be called: {why}{hint}")


def _check_key(definition: Definition, secrets: Secrets, data_dir: Path) -> None:
    if sum(map(bool, (secrets.key, definition.key_variable, definition.key_file))) > 1:
        raise Invalid("key: give the key itself, key_variable or key_file, not several of them")
    if secrets.key and (problem := key_problem(KINDS[definition.kind], secrets.key)) is not None:
        raise Invalid(f"key: {problem}")
    variable = definition.key_variable
    own = variable.upper().startswith("BENCHYARD_") and not variable.upper().startswith("BENCHYARD_PROVIDER_")
    if variable and (own or not VARIABLE.fullmatch(variable)):
        raise Invalid("key_variable: name a variable that holds a key of a provider, such as LAB_API_KEY")
    if definition.key_file:
        path = Path(definition.key_file)
        if not path.is_absolute():
            raise Invalid("key_file: give the whole path on the machine of the service, such as /run/secrets/lab_key")
        if path.resolve().is_relative_to(data_dir.resolve()):
            raise Invalid("key_file: files in the data directory of the service hold its own secrets; use another place")


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not HEADER.fullmatch(name) or name.lower() in OURS_TO_SEND:
            raise Invalid(f"headers: {name[:100]!r} cannot be set")
        if not value.isascii() or not value.isprintable():
            raise Invalid(f"headers: the value of {name} has characters that a header cannot have")


def split_login(url: str) -> tuple[str, str]:
    """A proxy's address without its credentials, and the credentials."""
    parts = urlsplit(url if "://" in url or not url else f"http://{url}")
    login, at, host = parts.netloc.rpartition("@")
    return (urlunsplit(parts._replace(netloc=host)), login) if at else (url, "")


def with_login(url: str, login: str) -> str:
    if not login:
        return url
    parts = urlsplit(url if "://" in url else f"http://{url}")
    user, _, password = login.partition(":")
    safe = f"{quote(unquote(user), safe='')}:{quote(unquote(password), safe='')}"
    return urlunsplit(parts._replace(netloc=f"{safe}@{parts.netloc}"))
