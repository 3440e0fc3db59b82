"""Takes fields out of a source record, or says in one sentence why it cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orchestrator.datasets.formats.problem import Found, LeftOut, Unusable
from orchestrator.datasets.formats.source import Source, TooLong, parse_object
from orchestrator.datasets.packs.pack import Entry

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


def read_lines(source: Source, read: Reader) -> Iterator[Found | LeftOut]:
    """Every line of a JSON-lines file through `read`."""
    for number, line in source.lines():
        place = f"{source.path.name} line {number}"
        if isinstance(line, TooLong):
            yield LeftOut(place, "longer than a line may be")
            continue
        try:
            yield Found(place, *read(parse_object(line)))
        except (Unusable, ValueError) as error:
            yield LeftOut(place, str(error))


def read_array(name: str, rows: list[Any], read: Reader) -> Iterator[Found | LeftOut]:
    """Every element of a JSON array through `read`."""
    for number, row in enumerate(rows, start=1):
        place = f"{name} record {number}"
        try:
            if not isinstance(row, dict):
                raise Unusable("not a JSON object")
            yield Found(place, *read(row))
        except Unusable as error:
            yield LeftOut(place, str(error))
