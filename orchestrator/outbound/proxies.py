"""Which proxy to use for an address, from the usual variables. Pure: a mapping in, frozen values out.

`HTTPS_PROXY` and `HTTP_PROXY` apply to addresses with that scheme, `ALL_PROXY` to both. `NO_PROXY` lists what is called
directly: hosts including their subdomains, addresses, networks, each with or without a port, or `*`. Lower-case names take
precedence. This machine (localhost, 127.0.0.0/8, ::1) is never called through a proxy, which would take these names for
itself.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from orchestrator.startup import BadConfiguration

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Proxy:
    scheme: str
    host: str
    port: int
    variable: str
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Without the credentials."""
        return f"{self.scheme}://{_bracketed(self.host)}:{self.port}"

    @property
    def authorization(self) -> str:
        """The value of `Proxy-Authorization`; empty when there are no credentials."""
        if self.credentials is None:
            return ""
        return "Basic " + base64.b64encode(":".join(self.credentials).encode()).decode()

    def __str__(self) -> str:
        return f"{_bracketed(self.host)}:{self.port}"


class Proxies:
    """The proxies that an environment names. Raises `BadConfiguration` for an invalid address."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._every: Proxy | None = None
        self._by_scheme = {scheme: _proxy(env, f"{scheme}_proxy") or _proxy(env, "all_proxy") for scheme in _PORTS}
        self._exempt = [entry.strip().lower() for entry in _value(env, "no_proxy")[1].split(",") if entry.strip()]

    @classmethod
    def always(cls, url: str, named_by: str) -> Proxies:
        """One proxy for every address, whatever the environment says. Raises `BadConfiguration`."""
        proxies = cls({})
        proxies._every = _proxy({named_by: url}, named_by)
        return proxies

    def of(self, scheme: str, host: str, port: int) -> Proxy | None:
        """The proxy for an address; None: call it directly."""
        if self._every is not None:
            return self._every
        proxy = self._by_scheme.get(scheme)
        if proxy is None or _is_this_machine(host) or any(_exempts(entry, host, port) for entry in self._exempt):
            return None
        return proxy


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def _is_this_machine(host: str) -> bool:
    address = address_of(host)
    return host.lower().rstrip(".") == "localhost" if address is None else address.is_loopback


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _value(env: Mapping[str, str], name: str) -> tuple[str, str]:
    """The name of the variable that is set, and its value."""
    for variable in (name, name.upper()):
        if value := env.get(variable, "").strip():
            return variable, value
    return name.upper(), ""


def _exempts(entry: str, host: str, port: int) -> bool:
    """Whether an entry of `NO_PROXY` covers this host."""
    if entry == "*":
        return True
    address = address_of(host)
    if address is not None and (network := _network(entry)) is not None:
        return address in network
    name, colon, of_port = entry.rpartition(":")
    if colon and of_port.isdecimal() and _network(entry) is None:
        if int(of_port) != port:
            return False
        entry = name
    if address is not None:
        return address_of(entry) == address
    name, host = entry.removeprefix("*").strip("."), host.lower().rstrip(".")
    return host == name or host.endswith(f".{name}")


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _proxy(env: Mapping[str, str], name: str) -> Proxy | None:
    variable, value = _value(env, name)
    if not value:
        return None
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host:
        raise BadConfiguration(f"{variable} is not the address of a proxy, such as http://proxy.example:3128")
    if parts.scheme not in _PORTS:
        raise BadConfiguration(f"{variable}: a {parts.scheme} proxy cannot be used; name one for HTTP, http://host:port")
    credentials = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return Proxy(parts.scheme, host, port or _PORTS[parts.scheme], variable, credentials)
