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


def safe_name(given: str) -> str:
    """One path component without a leading dot."""
    name = _UNSAFE.sub("_", given).lstrip(".")[:LONGEST].rstrip(".")
    return f"_{name}" if not name or _RESERVED.fullmatch(name) else name


def safe_names(given: Iterable[str]) -> dict[str, str]:
    """Maps each name to a safe one; all are distinct, even on case-insensitive systems."""
    taken: set[str] = set()
    names = {}
    for each in sorted(set(given)):
        name = base = safe_name(each)
        number = 2
        while name.casefold() in taken:
            name = f"{base[: LONGEST - 8]}-{number}"
            number += 1
        taken.add(name.casefold())
        names[each] = name
    return names
