"""Where the service is and which token opens it, by the environment and the files that the `benchyard` command writes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from orchestrator.client.transports import LOOPBACK, Address

EXAMPLE = "http://127.0.0.1:8000"
TOKEN_FILE = "token"  # noqa: S105


def find_address(
    url: str | None, token: str | None, workspace: str | None, environment: Mapping[str, str] | None = None
) -> Address:
    """Raises `ValueError` if the address is none. The token of this machine's service is not sent to another machine."""
    env = os.environ if environment is None else environment
    here = f"http://127.0.0.1:{env.get('BENCHYARD_PORT', '').strip() or 8000}"
    found = (url or env.get("BENCHYARD_URL", "").strip() or here).rstrip("/")
    parts = urlsplit(found)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{found!r} is not the address of a service; it must look like {EXAMPLE}")
    secret = token or env.get("BENCHYARD_TOKEN", "").strip() or stored_logins(env).get(found)
    if not secret and parts.hostname in LOOPBACK:
        secret = _local_token(Path(env.get("BENCHYARD_DATA", "").strip() or "data"))
    return Address(found, secret, workspace or env.get("BENCHYARD_WORKSPACE", "").strip() or None)


def logins_file(environment: Mapping[str, str]) -> Path:
    """The file with the tokens of `benchyard login`, one per service."""
    base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "benchyard" / "logins.json"


def stored_logins(environment: Mapping[str, str]) -> dict[str, str]:
    try:
        logins = json.loads(logins_file(environment).read_text())
    except (OSError, ValueError):
        return {}
    return {str(url): str(token) for url, token in logins.items()} if isinstance(logins, dict) else {}


def _local_token(data: Path) -> str | None:
    try:
        return (data / TOKEN_FILE).read_text("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
