"""What a dataset looks like: how many problems of each kind it has, and some of its records cut to a readable size. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator.datasets.packs.pack import Entry

MAX_TEXT = 2000
MAX_ITEMS = 20
MAX_DEPTH = 6
MAX_MONTHS = 36
MAX_RECORDS = 20


@dataclass(frozen=True)
class Statistics:
    """Numbers of problems; problems without the property are not counted."""

    difficulties: dict[str, int]
    categories: dict[str, int]
    platforms: dict[str, int]
    dates: dict[str, int]
    """By month, or by year if there are many months; in order."""


@dataclass(frozen=True)
class Preview:
    """A problem with its index entry; long texts and lists of the record are cut."""

    entry: Entry
    record: dict[str, Any]


def statistics(entries: Iterable[Entry]) -> Statistics:
    entries = list(entries)
    months = Counter(entry.date[:7] for entry in entries if entry.date)
    dates = months if len(months) <= MAX_MONTHS else Counter(entry.date[:4] for entry in entries if entry.date)
    return Statistics(
        difficulties=_counted(entry.difficulty for entry in entries),
        categories=_counted(entry.category for entry in entries),
        platforms=_counted(entry.platform for entry in entries),
        dates=dict(sorted(dates.items())),
    )


def spread(ids: list[str], count: int) -> list[str]:
    """Up to `count` ids, spread evenly from the first on, so that a preview is not of one category only."""
    count = min(count, len(ids))
    return [ids[index * len(ids) // count] for index in range(count)]


def shortened(value: Any, depth: int = MAX_DEPTH) -> Any:
    """The value with long texts, long lists and deep nesting cut; what was cut is said in its place."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]} ... ({len(value) - MAX_TEXT} more characters)"
    if isinstance(value, (list, dict)) and not depth:
        return f"... ({len(value)} more values)" if value else value
    if isinstance(value, list):
        return list(_items(value, depth - 1))
    if isinstance(value, dict):
        return {shortened(key): shortened(item, depth - 1) for key, item in value.items()}
    return value


def _items(values: list[Any], depth: int) -> Iterator[Any]:
    yield from (shortened(value, depth) for value in values[:MAX_ITEMS])
    if len(values) > MAX_ITEMS:
        yield f"... ({len(values) - MAX_ITEMS} more)"


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(value for value in values if value).most_common())
