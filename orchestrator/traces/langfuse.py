"""Converts Langfuse exports into traces: traces with or without observations, single observations, ingestion batches. Pure.

Scores given in Langfuse are left out of the trace, since an eval must not read them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.traces.records import BadTrace, TraceRecord, make_record

OBSERVATION_TYPES = frozenset(
    ["GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"]
)
TRACE_MARKS = frozenset({"observations", "htmlPath", "bookmarked", "sessionId", "userId", "projectId", "environment"})
KEPT = ("name", "timestamp", "sessionId", "userId", "release", "version", "tags", "environment", "totalCost", "latency")


def is_trace(document: Any) -> bool:
    if not isinstance(document, Mapping) or "id" not in document:
        return False
    return "input" in document and len(TRACE_MARKS & document.keys()) >= 2


def is_observation(document: Any) -> bool:
    if not isinstance(document, Mapping):
        return False
    return bool(document.get("traceId")) and str(document.get("type", "")).upper() in OBSERVATION_TYPES


def is_ingestion(document: Any) -> bool:
    """Whether this is an event of the ingestion API: `trace-create`, `generation-create` and so on, with a body."""
    return isinstance(document, Mapping) and isinstance(document.get("body"), Mapping) and "-" in str(document.get("type"))


def pieces_of(document: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Splits a document into (trace id, piece) pairs: the trace itself, one of its observations, or both."""
    if is_ingestion(document):
        kind, body = str(document["type"]), dict(document["body"])
        if kind.startswith("score"):
            return []
        if not kind.startswith("trace"):
            return [
                (
                    str(body.get("traceId") or body.get("id") or ""),
                    {"observation": {"type": kind.split("-", maxsplit=1)[0], **body}},
                )
            ]
        return [(str(body.get("id") or ""), {"trace": body})]
    if is_observation(document):
        return [(str(document["traceId"]), {"observation": dict(document)})]
    return [(str(document.get("id") or ""), {"trace": dict(document)})]


def trace_of(trace_id: str, pieces: Sequence[dict[str, Any]]) -> TraceRecord:
    if not trace_id:
        raise BadTrace("a Langfuse trace has no id")
    trace: dict[str, Any] = {}
    observations: list[Mapping[str, Any]] = []
    for piece in pieces:
        trace |= {key: value for key, value in piece.get("trace", {}).items() if value is not None}
        if "observation" in piece:
            observations.append(piece["observation"])
    inner = trace.get("observations")
    if isinstance(inner, list):
        observations += [observation for observation in inner if isinstance(observation, Mapping)]
    observations.sort(key=lambda observation: str(observation.get("startTime") or observation.get("timestamp") or ""))
    roots = [observation for observation in observations if not observation.get("parentObservationId")] or observations
    input_ = _first([trace.get("input"), *[root.get("input") for root in roots], *[o.get("input") for o in observations]])
    output = _first(
        [
            trace.get("output"),
            *[o.get("output") for o in reversed(roots)],
            *[o.get("output") for o in reversed(observations)],
        ]
    )
    if input_ is None and output is None:
        raise BadTrace("neither the trace nor its observations have an input or an output")
    metadata = _unpacked(trace.get("metadata"))
    fields = {key: trace[key] for key in KEPT if trace.get(key) not in (None, [], "")}
    extra = metadata if isinstance(metadata, Mapping) else {"metadata": metadata} if metadata else {}
    return make_record(
        trace_id,
        input_,
        output,
        [_step(observation) for observation in observations],
        {"source": "langfuse", **fields, **extra},
    )


def _first(values: Sequence[Any]) -> Any:
    return next((_unpacked(value) for value in values if value not in (None, "")), None)


def _step(observation: Mapping[str, Any]) -> dict[str, Any]:
    step = {
        "name": observation.get("name"),
        "type": str(observation.get("type") or "span").lower(),
        "model": observation.get("model") or observation.get("providedModelName"),
        "input": _unpacked(observation.get("input")),
        "output": _unpacked(observation.get("output")),
        "error": observation.get("statusMessage") if str(observation.get("level")).upper() == "ERROR" else None,
    }
    return {key: value for key, value in step.items() if value is not None}


def _unpacked(value: Any) -> Any:
    """CSV and JSON exports hold nested values as JSON strings."""
    if isinstance(value, str) and value[:1] in "[{":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
