"""The service's address (BENCHYARD_URL, or host and port) and token (BENCHYARD_TOKEN, the one of `benchyard login`, or the
one in the data directory).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from pydantic import ValidationError
from pydantic_settings import SettingsError

from orchestrator.cli.errors import BadUsage
from orchestrator.client.service_address import TOKEN_FILE, logins_file, stored_logins
from orchestrator.client.transports import LOOPBACK
from orchestrator.settings import Settings

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "[::1]"}  # noqa: S104


@dataclass(frozen=True)
class Connection:
    url: str
    token: str | None = field(repr=False)
    given: bool = False
    """BENCHYARD_URL names the service, so this command neither starts nor stops it."""
    workspace: str | None = None
    """One of the workspaces that the token gives access to."""

    @property
    def is_local(self) -> bool:
        return (urlsplit(self.url).hostname or "") in LOOPBACK

    @property
    def login_link(self) -> str:
        return f"{self.url}/login?token={quote(self.token, safe='')}" if self.token else f"{self.url}/login"


def read_settings() -> Settings:
    """The service's settings. Raises `BadUsage` with the variable's name if one is invalid."""
    try:
        return Settings()
    except ValidationError as error:
        raise BadUsage(_first_sentence(error)) from error
    except SettingsError as error:
        raise BadUsage(f"A setting cannot be read: {error}.") from error


def _first_sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    message = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    if not first["loc"]:  # concerns several settings, which it names
        return f"{message}."
    name, *inside = (str(part) for part in first["loc"] if part != "[key]")
    variable = name if name == "DATABASE_URL" else f"BENCHYARD_{name.upper()}"
    return f"{variable} is not valid: {'.'.join(inside) + ': ' if inside else ''}{message}."


def find(settings: Settings, environment: Mapping[str, str] | None = None) -> Connection:
    env = os.environ if environment is None else environment
    configured_url = env.get("BENCHYARD_URL", "").strip().rstrip("/")
    if configured_url:
        parts = urlsplit(configured_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadUsage(f"BENCHYARD_URL is {configured_url!r}; it must look like http://127.0.0.1:8000.")
        url = configured_url
    else:
        host = ANY_ADDRESS.get(settings.host, settings.host)
        url = f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{settings.port}"
    workspace = env.get("BENCHYARD_WORKSPACE", "").strip() or None
    configured = (settings.token.get_secret_value() if settings.token else None) or stored_logins(env).get(url)
    connection = Connection(url, configured, given=bool(configured_url), workspace=workspace)
    if configured or not (connection.is_local or not configured_url):
        return connection  # the token of this machine's service is not sent to another machine
    return Connection(url, stored_token(settings.data), given=bool(configured_url), workspace=workspace)


def stored_token(data_dir: Path) -> str | None:
    """The token in the data directory."""
    path = data_dir / TOKEN_FILE
    try:
        token = path.read_bytes().strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadUsage(f"The token in {path} cannot be read: {error.strerror}.") from error
    if not all(0x20 <= byte <= 0x7E for byte in token):  # nothing else is valid in a header
        raise BadUsage(
            f"The file {path} does not hold a token; set BENCHYARD_TOKEN, or delete the file and start the service."
        )
    return token.decode("ascii") or None


def store_login(environment: Mapping[str, str], url: str, token: str | None) -> Path:
    """Stores the token for the service at `url` in a file that only its owner can read; None removes it."""
    path = logins_file(environment)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    logins = {other: value for other, value in stored_logins(environment).items() if other != url}
    if token is not None:
        logins[url] = token
    part = path.with_suffix(".new")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(logins, file)
    part.replace(path)
    return path
