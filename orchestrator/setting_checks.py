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
_KUBE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_TOLERATION = frozenset({"key", "operator", "value", "effect", "tolerationSeconds"})
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}")


def json_object(example: str) -> Callable[[object], object]:
    """Parses a JSON object from the environment."""

    def read(text: object) -> object:
        if not isinstance(text, str):
            return text
        try:
            value: Any = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ValueError(f"{text[:60]!r} is not a JSON object; write for example {example}")
        return value

    return read


def kube_name(value: object) -> object:
    """The name of an object of Kubernetes; empty means none."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _KUBE_NAME.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r} cannot be a name in Kubernetes; use small letters, digits, '-' and '.'")
    return value


def kube_names(value: object) -> object:
    """Names of objects of Kubernetes, with commas."""
    if not isinstance(value, str):
        return value
    return tuple(kube_name(entry.strip()) for entry in value.split(",") if entry.strip())


def kube_labels(value: object) -> object:
    """A JSON object of labels, such as a node selector."""
    labels = json_object('\'{"pool": "bench"}\'')(value)
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise ValueError('its values must be texts; write for example \'{"pool": "bench"}\'')
    return labels


def kube_tolerations(value: object) -> object:
    """A JSON list of tolerations, as in a pod."""
    example = '\'[{"key": "bench", "operator": "Exists", "effect": "NoSchedule"}]\''
    listed: Any = value
    if isinstance(value, str):
        try:
            listed = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError(f"{value[:60]!r} is not a JSON list; write for example {example}") from None
    if not isinstance(listed, list | tuple) or not all(_is_toleration(entry) for entry in listed):
        raise ValueError(
            f"it must be a list of tolerations with key, operator, value and effect; write for example {example}"
        )
    return tuple(listed)


def _is_toleration(entry: object) -> bool:
    if not isinstance(entry, dict) or not entry or not set(entry) <= _TOLERATION:
        return False
    seconds = entry.get("tolerationSeconds", 0)
    texts = (value for key, value in entry.items() if key != "tolerationSeconds")
    return isinstance(seconds, int) and all(isinstance(value, str) for value in texts)


def addresses_with_ports(value: object) -> object:
    """Addresses with ports, with commas."""
    if not isinstance(value, str):
        return value
    entries = tuple(entry.strip() for entry in value.split(",") if entry.strip())
    for entry in entries:
        if not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}", entry):
            raise ValueError(
                f"{entry[:80]!r} is not an address with a port; write for example '169.254.169.254:80, 10.0.0.1:443'"
            )
    return entries


def log_level(value: object) -> object:
    word = value.strip().lower() if isinstance(value, str) else value
    if word not in LOG_LEVELS:
        raise ValueError(f"{str(value)[:40]!r} is not a log level; it is one of {', '.join(LOG_LEVELS)}")
    return word


def web_address(value: object) -> object:
    """A URL with scheme and host; empty means none."""
    if value is None or value == "":
        return None
    try:
        parts = urlsplit(str(value))
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port >= 0)
    except ValueError:
        valid = False
    if not valid or any(character.isspace() for character in str(value)):
        raise ValueError(f"{str(value)[:80]!r} is not an address; write for example https://bench.example.org")
    return value


def mail_server(value: object) -> object:
    """The URL of an SMTP server; empty means none. It may hold a password, so it is not repeated."""
    if value is None or value == "":
        return None
    try:
        parts = urlsplit(str(value))
        valid = parts.scheme in ("smtp", "smtps") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(
            "it is not the address of a mail server; write for example smtp://user:password@mail.example.org:587"
        )
    return value


def store_url(value: object) -> object:
    """The URL of an object store for archives; empty means none."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _STORE.fullmatch(value):
        raise ValueError(
            f"{str(value)[:80]!r} is not an object store; write for example gs://bucket/folder, az://container/folder or s3://bucket"
        )
    return value


def resource_name(value: object) -> object:
    """A name that engines accept for containers, labels and networks."""
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r} cannot be a name; use letters, digits, '.', '_' and '-', at most 63")
    return value


def token(value: object) -> object:
    """A token that can be sent in a header."""
    if value is None or value == "":
        return None
    text = value.get_secret_value() if hasattr(value, "get_secret_value") else value
    if not isinstance(text, str) or not re.fullmatch(r"[\x20-\x7e]{1,200}", text):
        raise ValueError("it must be at most 200 ASCII letters, digits and signs on one line")
    return value


def database_url(value: object) -> object:
    if value is None or value == "":
        return None
    text = value.get_secret_value() if hasattr(value, "get_secret_value") else str(value)
    if not _DATABASES.fullmatch(text):
        raise ValueError("it must begin with postgresql:// or sqlite:///; leave it out for SQLite in the data directory")
    return value
