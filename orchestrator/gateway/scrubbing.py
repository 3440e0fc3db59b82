"""Takes secrets out of what a provider said, wherever in it they are. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

MASK = "[key]"


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
    if not any(secret in text or json.dumps(secret)[1:-1] in text for secret in secrets):
        return message
    clean: dict[str, Any] = scrubbed(message, secrets)
    return clean
