"""Records of a source file: their fields, and the problems made from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from orchestrator.datasets.formats.rows import LeftOut
from orchestrator.datasets.formats.source import Source
from orchestrator.datasets.formats.tabular import rows_of
from orchestrator.datasets.packs.pack import Entry

__all__ = ["Format", "Found", "LeftOut", "Reader", "Unusable", "problems_of", "read_records", "text", "texts"]


class Unusable(Exception):
    """The record cannot be scored; the text is one sentence with the reason."""


@dataclass(frozen=True)
class Found:
    """A problem; `record` is the input of the benchmark's adapter."""

    place: str
    entry: Entry
    record: dict[str, Any]


class Format(Protocol):
    """Reads one source file of a benchmark. Raises `BadSource` if the file as a whole cannot be read."""

    @property
    def adapter(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def licence(self) -> str: ...
    @property
    def origin(self) -> str: ...

    def read(self, source: Source) -> Iterator[Found | LeftOut]: ...


@runtime_checkable
class JointFormat(Format, Protocol):
    """A format whose files belong together: what one holds is needed for the problems of another."""

    def read_together(self, sources: Sequence[Source]) -> Iterator[Found | LeftOut]: ...


def problems_of(form: Format, sources: Sequence[Source]) -> Iterator[Found | LeftOut]:
    """Everything that a format finds in its files, in their order."""
    if isinstance(form, JointFormat):
        return form.read_together(sources)
    return (item for source in sources for item in form.read(source))


Reader = Callable[[dict[str, Any]], tuple[Entry, dict[str, Any]]]


def text(record: Mapping[str, Any], field: str) -> str:
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise Unusable(f"field {field} is missing or no text")
    return value


def texts(record: Mapping[str, Any], field: str) -> list[str]:
    value = record.get(field)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unusable(f"field {field} is missing or no list of texts")
    return value


def read_records(source: Source, read: Reader) -> Iterator[Found | LeftOut]:
    """Applies `read` to every record of a file of any kind."""
    for row in rows_of(source):
        if isinstance(row, LeftOut):
            yield row
            continue
        try:
            yield Found(row.position, *read(row.values))
        except Unusable as error:
            yield LeftOut(row.position, str(error))
