"""A file of traces in any format that is understood, as records in our own shape. Blocking.

{"id": ..., "input": ..., "output": ..., "steps": [...], "metadata": {...}}     ours, one per line
{"resourceSpans": [...]}                                                          OpenTelemetry, OTLP as JSON
{"id": ..., "observations": [...], ...}, {"traceId": ..., "type": "GENERATION"}  Langfuse
"""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any

from orchestrator.traces import langfuse, otel
from orchestrator.traces.documents import UnreadableDocument, read
from orchestrator.traces.records import BadTrace, TraceRecord, record_of


class Format(StrEnum):
    AUTO = "auto"  #: detected from each document
    PLAIN = "plain"  #: our own
    OTEL = "otel"  #: OpenTelemetry, OTLP as JSON
    LANGFUSE = "langfuse"  #: Langfuse exports


@dataclass(frozen=True)
class LeftOut:
    """A part of the file that could not be used, with its position and the reason."""

    line: int
    reason: str


def records(path: Path, form: Format = Format.AUTO) -> Iterator[TraceRecord | LeftOut]:
    """Yields every trace. Traces whose pieces may be scattered over the file come last."""
    with Gathering() as spans, Gathering() as pieces:
        for entry in read(path):
            if isinstance(entry, UnreadableDocument):
                yield LeftOut(entry.line, entry.reason)
                continue
            for document in _opened(entry.value):
                try:
                    record = _sorted(document, form, spans, pieces, entry.line)
                except (BadTrace, AttributeError, TypeError) as error:
                    yield LeftOut(entry.line, str(error))
                    continue
                if record is not None:
                    yield replace(record, line=entry.line)
        yield from _gathered(spans, otel.trace_of)
        yield from _gathered(pieces, langfuse.trace_of)


def _opened(document: Any) -> list[Any]:
    """API pages and batches hold their documents in a list."""
    if isinstance(document, dict) and not {"input", "output"} & document.keys():
        for name in ("data", "batch", "traces"):
            if isinstance(document.get(name), list):
                return list(document[name])
    return [document]


def _sorted(document: Any, form: Format, spans: Gathering, pieces: Gathering, line: int) -> TraceRecord | None:
    if form is Format.OTEL or (form is Format.AUTO and otel.is_export(document)):
        if not otel.is_export(document):
            raise BadTrace("not an OTLP document: resourceSpans is missing")
        for trace_id, span in list(otel.spans_of(document)):
            spans.add(trace_id, [line, span])
        return None
    if form is Format.LANGFUSE or (form is Format.AUTO and _is_langfuse(document)):
        if not isinstance(document, dict):
            raise BadTrace("a Langfuse trace is a JSON object")
        for trace_id, piece in langfuse.pieces_of(document):
            pieces.add(trace_id, [line, piece])
        return None
    return record_of(document)


def _is_langfuse(document: Any) -> bool:
    return langfuse.is_trace(document) or langfuse.is_observation(document) or langfuse.is_ingestion(document)


def _gathered(
    gathering: Gathering, make: Callable[[str, list[dict[str, Any]]], TraceRecord]
) -> Iterator[TraceRecord | LeftOut]:
    for key, group, whole in gathering.groups():
        if not whole:
            yield LeftOut(group[0][0] if group else 0, f"trace {key[:80]}: it is too large")
            continue
        try:
            yield replace(make(key, [piece for _, piece in group]), line=group[0][0])
        except (BadTrace, AttributeError, TypeError, KeyError) as error:
            yield LeftOut(group[0][0], f"trace {key[:80]}: {error}")


PART_BYTES = 16 << 20
GROUP_BYTES = 8 << 20


class Gathering:
    """Groups pieces by key: call `add` for each piece, then `groups`, which keeps the order of arrival."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        self._part_bytes = part_bytes
        self._held: list[tuple[str, int, str]] = []
        self._bytes = 0
        self._count = 0
        self._folder = tempfile.TemporaryDirectory(prefix="benchyard-traces-")
        self._parts: list[Path] = []

    def __enter__(self) -> Gathering:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def add(self, key: str, piece: Any) -> None:
        text = json.dumps(piece)
        self._held.append((key, self._count, text))
        self._count += 1
        self._bytes += len(text) + len(key) + 100
        if self._bytes > self._part_bytes:
            self._write()

    def _write(self) -> None:
        path = Path(self._folder.name) / f"{len(self._parts)}"
        with path.open("w") as file:
            for row in sorted(self._held):
                file.write(json.dumps(row) + "\n")
        self._parts.append(path)
        self._held, self._bytes = [], 0

    def groups(self) -> Iterator[tuple[str, list[Any], bool]]:
        """Yields key, pieces, and whether the pieces are complete: those beyond the size limit of a trace are dropped."""
        with ExitStack() as stack:
            files = [stack.enter_context(path.open()) for path in self._parts]
            rows = heapq.merge(sorted(self._held), *(map(_row, file) for file in files))
            for key, members in groupby(rows, key=lambda row: row[0]):
                pieces, size = [], 0
                for _, _, text in members:
                    size += len(text)
                    if size <= GROUP_BYTES:
                        pieces.append(json.loads(text))
                yield key, pieces, size <= GROUP_BYTES


def _row(line: str) -> tuple[str, int, str]:
    key, number, text = json.loads(line)
    return key, number, text
