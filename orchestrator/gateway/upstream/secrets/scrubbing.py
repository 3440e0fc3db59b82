"""What a provider answers is stored without our secrets: keys, and values of the headers that an operator set. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

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
