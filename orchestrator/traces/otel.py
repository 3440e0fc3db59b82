"""Converts OpenTelemetry spans of generative models (OTLP as JSON, `gen_ai.*` attributes) into traces. Pure.

Supported are the current conventions (`gen_ai.input.messages`, `gen_ai.output.messages`), the older ones (span events,
`gen_ai.prompt.0.content`), and OpenInference's `input.value`. The spans of one trace may be anywhere in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.traces.records import BadTrace, TraceRecord, make_record

IN = ("gen_ai.input.messages", "gen_ai.prompt", "traceloop.entity.input", "input.value", "gen_ai.tool.call.arguments")
OUT = ("gen_ai.output.messages", "gen_ai.completion", "traceloop.entity.output", "output.value", "gen_ai.tool.call.result")
PROMPT_EVENTS = ("gen_ai.content.prompt", "gen_ai.system.message", "gen_ai.user.message", "gen_ai.tool.message")
ANSWER_EVENTS = ("gen_ai.content.completion", "gen_ai.choice", "gen_ai.assistant.message")
LONG_ATTRIBUTE = 2000


def is_export(document: Any) -> bool:
    return isinstance(document, Mapping) and ("resourceSpans" in document or "resource_spans" in document)


def spans_of(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (trace id, span in a compact form) for every span."""
    for resource in _list(document, "resourceSpans", "resource_spans"):
        resource_attributes = attributes_of((resource.get("resource") or {}).get("attributes"))
        for scope in _list(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            for span in _list(scope, "spans"):
                trace_id = str(span.get("traceId") or span.get("trace_id") or "")
                if not trace_id:
                    raise BadTrace("a span has no traceId")
                yield trace_id, _small(span, resource_attributes)


def _list(holder: Mapping[str, Any], *names: str) -> Iterator[Mapping[str, Any]]:
    for name in names:
        entries = holder.get(name)
        if entries is None:
            continue
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise BadTrace(f"{name}: a list of objects is expected")
        yield from entries


def attributes_of(attributes: Any) -> dict[str, Any]:
    """OTLP writes attributes as a list of keys and typed values; some exporters write a plain object."""
    if isinstance(attributes, Mapping):
        return dict(attributes)
    if not isinstance(attributes, list):
        return {}
    return {
        str(attribute.get("key")): _value(attribute.get("value"))
        for attribute in attributes
        if isinstance(attribute, Mapping)
    }


def _value(content: Any) -> Any:
    if not isinstance(content, Mapping):
        return content
    for name, value in content.items():
        if name in ("intValue", "int_value"):
            return int(value) if str(value).lstrip("-").isdecimal() else value
        if name in ("arrayValue", "array_value"):
            return [_value(item) for item in (value or {}).get("values", [])]
        if name in ("kvlistValue", "kvlist_value"):
            return attributes_of((value or {}).get("values", []))
        return value
    return None


def _small(span: Mapping[str, Any], resource: dict[str, Any]) -> dict[str, Any]:
    attributes = attributes_of(span.get("attributes"))
    start, end = _nanos(span, "startTimeUnixNano"), _nanos(span, "endTimeUnixNano")
    status = span.get("status") if isinstance(span.get("status"), Mapping) else {}
    assert isinstance(status, Mapping)
    events = [event for event in span.get("events") or [] if isinstance(event, Mapping)]
    short = {
        key: value
        for key, value in attributes.items()
        if key not in (*IN, *OUT) and not key.startswith(("gen_ai.prompt.", "gen_ai.completion."))
        if len(str(value)) <= LONG_ATTRIBUTE
    }
    return {
        "span": str(span.get("spanId") or span.get("span_id") or ""),
        "parent": str(span.get("parentSpanId") or span.get("parent_span_id") or ""),
        "start": start,
        "name": str(span.get("name") or ""),
        "type": str(
            attributes.get("gen_ai.operation.name")
            or attributes.get("openinference.span.kind")
            or span.get("kind")
            or "span"
        ),
        "model": attributes.get("gen_ai.response.model") or attributes.get("gen_ai.request.model"),
        "input": _content(attributes, events, IN, PROMPT_EVENTS, "gen_ai.prompt."),
        "output": _content(attributes, events, OUT, ANSWER_EVENTS, "gen_ai.completion."),
        "duration_ms": round((end - start) / 1e6, 3) if end >= start > 0 else None,
        "error": str(status.get("message") or "error") if str(status.get("code")) in ("2", "STATUS_CODE_ERROR") else None,
        "attributes": short,
        "resource": resource,
    }


def _nanos(span: Mapping[str, Any], name: str) -> int:
    snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    text = str(span.get(name, span.get(snake, 0)) or 0)
    return int(text) if text.isdecimal() else 0


def _content(
    attributes: dict[str, Any],
    events: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    event_names: Sequence[str],
    prefix: str,
) -> Any:
    for name in names:
        if attributes.get(name) not in (None, ""):
            return _unpacked(attributes[name])
    numbered = sorted(
        ((key, value) for key, value in attributes.items() if key.startswith(prefix) and key.endswith(".content")),
        key=lambda pair: _message_order(pair[0], prefix),
    )
    if numbered:
        texts = [_unpacked(value) for _, value in numbered]
        return texts[0] if len(texts) == 1 else texts
    bodies = [attributes_of(event.get("attributes")) for event in events if event.get("name") in event_names]
    contents = [next((body[key] for key in _BODY if body.get(key) not in (None, "")), None) for body in bodies]
    messages = [_unpacked(content) for content in contents if content is not None]
    return None if not messages else messages[0] if len(messages) == 1 else messages


_BODY = ("gen_ai.prompt", "gen_ai.completion", "content", "message", "gen_ai.event.content", "body")


def _message_order(key: str, prefix: str) -> tuple[int, str]:
    number = key.removeprefix(prefix).split(".", 1)[0]
    return (int(number), key) if number.isdecimal() else (1 << 30, key)


def _unpacked(value: Any) -> Any:
    """Decodes attributes that hold JSON as text; messages with a single text part become that text."""
    if isinstance(value, str) and value[:1] in "[{":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        parts = value[0].get("parts")
        if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], Mapping):
            content = parts[0].get("content")
            return content if isinstance(content, str) else value
        if isinstance(value[0].get("content"), str):
            return value[0]["content"]
    return value


def trace_of(trace_id: str, spans: Sequence[dict[str, Any]]) -> TraceRecord:
    """Builds a trace from all its spans. Input and output are those of the root, or of the first and last span that have
    them.
    """
    ordered = sorted(spans, key=lambda span: (span["start"], span["span"]))
    ids = {span["span"] for span in ordered}
    roots = [span for span in ordered if not span["parent"] or span["parent"] not in ids]
    by_rank = [*roots[:1], *ordered]
    input_ = next((span["input"] for span in by_rank if span["input"] is not None), None)
    output = next((span["output"] for span in [*roots[:1], *reversed(ordered)] if span["output"] is not None), None)
    if input_ is None and output is None:
        raise BadTrace("none of its spans has an input or output that is understood (gen_ai.input.messages and the like)")
    steps = [
        {
            key: span[key]
            for key in ("name", "type", "model", "input", "output", "duration_ms", "error")
            if span[key] is not None
        }
        | ({"attributes": span["attributes"]} if span["attributes"] else {})
        for span in ordered
    ]
    resource = ordered[0]["resource"]
    metadata = {"source": "opentelemetry", "name": (roots or ordered)[0]["name"], "spans": len(ordered)}
    if resource.get("service.name"):
        metadata["service"] = resource["service.name"]
    return make_record(trace_id, input_, output, steps, metadata)
