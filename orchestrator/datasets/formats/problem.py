"""What a format gives the builder: problems that can be scored, and records that cannot, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.datasets.formats.source import Source
from orchestrator.datasets.packs.pack import Entry


class Unusable(Exception):
    """A record cannot be scored; the text is one sentence that says why."""


@dataclass(frozen=True)
class Found:
    """A problem; `record` is what the adapter of the benchmark reads."""

    place: str
    entry: Entry
    record: dict[str, Any]


@dataclass(frozen=True)
class LeftOut:
    """A record that is not taken."""

    place: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"


class Format(Protocol):
    """Reads one source file of a benchmark. `BadSource` if the file as a whole cannot be read."""

    @property
    def adapter(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def licence(self) -> str: ...
    @property
    def origin(self) -> str: ...

    def read(self, source: Source) -> Iterator[Found | LeftOut]: ...
