"""Regular expressions that users write. They run in linear time (RE2), so no pattern or text can stall the service or a
runner. The only module that imports `re2`."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

MAX_PATTERN_CHARS = 2000
MAX_MEMORY_BYTES = 8 << 20


class BadPattern(ValueError):
    """The pattern cannot be used; the text says why."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Compiles a pattern; raises `BadPattern`."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise BadPattern(f"it has {len(pattern)} characters, at most {MAX_PATTERN_CHARS} are allowed")
    import re2  # late: commands come without it into other images, and no runner waits for it at its start

    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        hint = (
            " (lookaround and back references are not supported: patterns run in linear time)"
            if "(?" in why or "escape" in why
            else ""
        )
        raise BadPattern(f"{why}{hint}") from None


def matches(pattern: str, text: str) -> Iterator[str]:
    """Yields the first group of each match that has one, or the whole match if the pattern has no group."""
    regex = compiled(pattern)
    for match in regex.finditer(text):
        value = match[1] if regex.groups else match[0]
        if value is not None:
            yield value


def search(pattern: str, text: str) -> bool:
    return compiled(pattern).search(text) is not None
