"""A file of traces in any format that is understood, as records in our own shape. Blocking.

{"id": ..., "input": ..., "output": ..., "steps": [...], "metadata": {...}}     ours, one per line
{"resourceSpans": [...]}                                                          OpenTelemetry, OTLP as JSON
{"id": ..., "observations": [...], ...}, {"traceId": ..., "type": "GENERATION"}  Langfuse
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from orchestrator.traces import langfuse, otel
from orchestrator.traces.documents import Unreadable, read
from orchestrator.traces.gathering import Gathering
from orchestrator.traces.records import BadTrace, TraceRecord, record_of


class Format(StrEnum):
    AUTO = "auto"  #: told by what is in each document
    PLAIN = "plain"  #: our own
    OTEL = "otel"  #: OpenTelemetry, OTLP as JSON
    LANGFUSE = "langfuse"  #: Langfuse exports


@dataclass(frozen=True)
class LeftOut:
    """What could not be used: where it stood, and why."""

    line: int
    reason: str


def records(path: Path, wanted: Format = Format.AUTO) -> Iterator[TraceRecord | LeftOut]:
    """Every trace. Those of which the pieces may lie apart come at the end."""
    with Gathering() as spans, Gathering() as pieces:
        for found in read(path):
            if isinstance(found, Unreadable):
                yield LeftOut(found.line, found.reason)
                continue
            for document in _opened(found.value):
                try:
                    record = _sorted(document, wanted, spans, pieces, found.line)
                except (BadTrace, AttributeError, TypeError) as error:
                    yield LeftOut(found.line, str(error))
                    continue
                if record is not None:
                    yield replace(record, line=found.line)
        yield from _gathered(spans, otel.trace_of)
        yield from _gathered(pieces, langfuse.trace_of)


def _opened(document: Any) -> list[Any]:
    """Pages of an API and batches hold their documents in a list."""
    if isinstance(document, dict) and not {"input", "output"} & document.keys():
        for name in ("data", "batch", "traces"):
            if isinstance(document.get(name), list):
                return list(document[name])
    return [document]


def _sorted(document: Any, wanted: Format, spans: Gathering, pieces: Gathering, line: int) -> TraceRecord | None:
    if wanted is Format.OTEL or (wanted is Format.AUTO and otel.is_export(document)):
        if not otel.is_export(document):
            raise BadTrace("not an OTLP document: resourceSpans is missing")
        for trace_id, span in list(otel.spans_of(document)):
            spans.add(trace_id, [line, span])
        return None
    if wanted is Format.LANGFUSE or (wanted is Format.AUTO and _is_langfuse(document)):
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
    for key, found, whole in gathering.groups():
        if not whole:
            yield LeftOut(found[0][0] if found else 0, f"trace {key[:80]}: it is too large")
            continue
        try:
            yield replace(make(key, [piece for _, piece in found]), line=found[0][0])
        except (BadTrace, AttributeError, TypeError, KeyError) as error:
            yield LeftOut(found[0][0], f"trace {key[:80]}: {error}")
