"""Keeps the number of series bounded: names that people choose become labels only up to a limit. Pure."""

from __future__ import annotations

OTHER = "other"
MOST_CHARACTERS = 80


class BoundedLabels:
    """The first so many different values keep their names; every later one is `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def of(self, value: str) -> str:
        name = value[:MOST_CHARACTERS]
        if name in self._known:
            return name
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(name)
        return name
