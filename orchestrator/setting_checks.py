"""Checks of single settings; each error says what to write instead. Pure; a leaf."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
_DATABASES = re.compile(r"(sqlite|postgres|postgresql|postgresql\+psycopg)://.*", re.DOTALL)
_STORE = re.compile(r"(s3|gs|az)://[a-zA-Z0-9][a-zA-Z0-9._-]+(/[a-zA-Z0-9._/-]*)?")
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}")


def json_object(example: str) -> Callable[[object], object]:
    """Parses a JSON object from the environment."""

    def read(given: object) -> object:
        if not isinstance(given, str):
            return given
        try:
            value: Any = json.loads(given)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ValueError(f"{given[:60]!r} is not a JSON object; write for example {example}")
        return value

    return read


def log_level(given: object) -> object:
    word = given.strip().lower() if isinstance(given, str) else given
    if word not in LOG_LEVELS:
        raise ValueError(f"{str(given)[:40]!r} is not a log level; it is one of {', '.join(LOG_LEVELS)}")
    return word


def web_address(given: object) -> object:
    """A URL with scheme and host; empty means none."""
    if given is None or given == "":
        return None
    try:
        parts = urlsplit(str(given))
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port >= 0)
    except ValueError:
        valid = False
    if not valid or any(character.isspace() for character in str(given)):
        raise ValueError(f"{str(given)[:80]!r} is not an address; write for example https://bench.example.org")
    return given


def store_url(given: object) -> object:
    """The URL of an object store for archives; empty means none."""
    if given is None or given == "":
        return None
    if not isinstance(given, str) or not _STORE.fullmatch(given):
        raise ValueError(
            f"{str(given)[:80]!r} is no object store; write for example gs://bucket/folder, az://container/folder or s3://bucket"
        )
    return given


def resource_name(given: object) -> object:
    """A name that engines accept for containers, labels and networks."""
    if given is None or given == "":
        return None
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise ValueError(f"{str(given)[:80]!r} cannot be a name; use letters, digits, '.', '_' and '-', at most 63")
    return given


def token(given: object) -> object:
    """A token that can be sent in a header."""
    if given is None or given == "":
        return None
    text = given.get_secret_value() if hasattr(given, "get_secret_value") else given
    if not isinstance(text, str) or not re.fullmatch(r"[\x20-\x7e]{1,200}", text):
        raise ValueError("it must be at most 200 ASCII letters, digits and signs on one line")
    return given


def database_url(given: object) -> object:
    if given is None or given == "":
        return None
    text = given.get_secret_value() if hasattr(given, "get_secret_value") else str(given)
    if not _DATABASES.fullmatch(text):
        raise ValueError("it must begin with postgresql:// or sqlite:///; leave it out for SQLite in the data directory")
    return given
