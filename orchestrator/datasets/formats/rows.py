"""What every reader of records yields: a row with its position, or the reason why one cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One record as a plain dictionary of JSON values."""

    position: str
    """For people: `test.parquet row 12`."""
    number: int
    """Of the line, record or row in its file, from 1."""
    values: dict[str, Any]


@dataclass(frozen=True)
class LeftOut:
    """A record that was left out."""

    place: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"
