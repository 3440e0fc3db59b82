"""The archive format, for writers and readers: versions and file names. Any name is turned into one that is safe on every
system. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

FORMAT = "benchyard-archive-1"
BATCH_FORMAT = "benchyard-batch-1"
MANIFEST, ITEMS, OUTPUT, BATCH = "manifest.json", "items.jsonl", "output.txt", "batch.json"
LONGEST = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def safe_name(text: str) -> str:
    """One path component without a leading dot."""
    name = _UNSAFE.sub("_", text).lstrip(".")[:LONGEST].rstrip(".")
    return f"_{name}" if not name or _RESERVED.fullmatch(name) else name


def safe_names(texts: Iterable[str]) -> dict[str, str]:
    """Maps each name to a safe one; all are distinct, even on case-insensitive systems."""
    used: set[str] = set()
    names = {}
    for text in sorted(set(texts)):
        name = base = safe_name(text)
        number = 2
        while name.casefold() in used:
            name = f"{base[: LONGEST - 8]}-{number}"
            number += 1
        used.add(name.casefold())
        names[text] = name
    return names
