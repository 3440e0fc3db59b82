"""Tokens that `benchyard login` got, one for each service, in a file of the user's that nobody else can read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path


def file_of(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "benchyard" / "logins.json"


def kept(environment: Mapping[str, str]) -> dict[str, str]:
    try:
        found = json.loads(file_of(environment).read_text())
    except (OSError, ValueError):
        return {}
    return {str(url): str(token) for url, token in found.items()} if isinstance(found, dict) else {}


def keep(environment: Mapping[str, str], url: str, token: str | None) -> Path:
    """Remember the token for the service at `url`; with None, forget it."""
    path = file_of(environment)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    logins = {known: value for known, value in kept(environment).items() if known != url}
    if token is not None:
        logins[url] = token
    fresh = path.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(logins, file)
    fresh.replace(path)
    return path
