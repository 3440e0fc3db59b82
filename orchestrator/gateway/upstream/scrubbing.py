"""Takes secrets out of what a provider said, wherever in it they are. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

MASK = "[key]"
SECRET_CHARS = 8
"""What is shorter is a switch, or the word that servers without keys are given: it would be found in any answer."""
PUBLIC_HEADERS = frozenset({"http-referer", "referer", "user-agent", "x-openrouter-title", "x-title"})
SCHEMES = frozenset({"api-key", "apikey", "basic", "bearer", "key", "token"})


def secrets_in_headers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """What may be a secret among the headers that an operator set: their values, and what stands after `Bearer` alone."""
    values = [value for name, value in headers.items() if name.lower() not in PUBLIC_HEADERS]
    parted = [value.partition(" ") for value in values]
    bare = [rest.strip() for scheme, _, rest in parted if scheme.lower() in SCHEMES]
    return tuple(value for value in (*values, *bare) if len(value) >= SECRET_CHARS)


def scrubbed(value: Any, secrets: Sequence[str]) -> Any:
    """The same text, list or object without the secrets. Of parsed values: in JSON a secret can be written in many ways."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, list):
        return [scrubbed(each, secrets) for each in value]
    if isinstance(value, dict):
        return {scrubbed(name, secrets): scrubbed(each, secrets) for name, each in value.items()}
    return value


def clean_answer(message: dict[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    """An answer has no business with our key, but there are servers that repeat everything."""
    text = json.dumps(message, ensure_ascii=False)
    long = [secret for secret in secrets if len(secret) >= SECRET_CHARS]
    if not any(secret in text or json.dumps(secret)[1:-1] in text for secret in long):
        return message
    clean: dict[str, Any] = scrubbed(message, long)
    return clean


def storable(text: str) -> str:
    """The same text without what no database takes: halves of letters, and zeros."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")
