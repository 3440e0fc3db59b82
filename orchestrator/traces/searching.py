"""Full-text search in traces. They are stored compressed, so each one is decompressed; the result says how far it got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from orchestrator.traces import queries as trace_queries
from orchestrator.traces.tables import Trace, TraceFeedback

PART = 500
MOST_LOOKED_AT = 20_000
"""About one second of work; callers continue from there."""

Row = tuple[Trace, TraceFeedback | None]


@dataclass(frozen=True)
class Search:
    rows: Sequence[Row]
    next: int | None
    """Where to continue; None at the end."""
    searched: int = 0
    """How many traces were decompressed."""


def search_traces(
    session: Session,
    project: str | None,
    eval_set_id: str | None,
    *,
    label: str | None = None,
    contradicted_by: str | None = None,
    text: str = "",
    after: int = 0,
    limit: int,
    most: int = MOST_LOOKED_AT,
) -> Search:
    """Traces in the order of `trace_queries.page` that contain the text, ignoring case, or have it as their id."""

    def page(start: int, count: int) -> Sequence[Row]:
        return trace_queries.page(
            session,
            limit=count,
            after=start,
            project=project,
            eval_set_id=eval_set_id,
            label=label,
            contradicted_by=contradicted_by,
        )

    if not text:
        rows = page(after, limit + 1)
        return Search(rows[:limit], rows[limit - 1][0].number if len(rows) > limit else None)
    needle, matches, searched, last = text.casefold(), list[Row](), 0, after
    while searched < most:
        part = page(last, PART)
        for row in part:
            last, searched = row[0].number or 0, searched + 1
            if _has(row[0], needle):
                matches.append(row)
                if len(matches) == limit:
                    return Search(matches, last, searched)
            else:
                session.expunge(row[0])
        if len(part) < PART:
            return Search(matches, None, searched)
    return Search(matches, last, searched)


def _has(trace: Trace, needle: str) -> bool:
    return needle in trace.id.casefold() or any(needle in text.casefold() for text in _texts(trace.data))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)
