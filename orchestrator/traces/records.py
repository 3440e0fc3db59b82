"""Traces in our own format, whatever they were imported from: validated, cut to size, with a content digest. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.contract.evals import Label

MAX_TRACE_BYTES = 1 << 20
MAX_ID_CHARS = 200
MAX_NOTE_CHARS = 10_000
FIELDS = frozenset({"id", "trace_id", "input", "output", "steps", "metadata", "label", "feedback", "rating", "note"})
POSITIVE = frozenset({"positive", "good", "up", "thumbs_up", "pass", "passed", "true", "yes", "1"})
NEGATIVE = frozenset({"negative", "bad", "down", "thumbs_down", "fail", "failed", "false", "no", "0", "-1"})


class BadTrace(ValueError):
    """The record is not a valid trace; the message says why."""


@dataclass(frozen=True)
class TraceRecord:
    id: str
    data: dict[str, Any]
    digest: str
    label: Label | None = None
    note: str = ""
    line: int = 0
    """The line of the file where it begins."""
    size_bytes: int = 0


def record_of(document: Any) -> TraceRecord:
    """Reads a trace in our own format: `id`, `input`, `output`, `steps`, `metadata`, and optionally `label` and `note`."""
    if not isinstance(document, Mapping):
        raise BadTrace("a trace is a JSON object with id, input, output, steps and metadata")
    if document.get("input") is None and document.get("output") is None:
        raise BadTrace("a trace has an input or an output; this one has neither")
    steps, metadata = document.get("steps"), document.get("metadata")
    if steps is not None and not isinstance(steps, list):
        raise BadTrace("steps: a list is expected")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise BadTrace("metadata: an object is expected")
    more = {key: value for key, value in document.items() if key not in FIELDS}
    if more:
        metadata = {**more, **(metadata or {})}
    label = next((document[name] for name in ("label", "feedback", "rating") if document.get(name) is not None), None)
    note = document.get("note") or ""
    if not isinstance(note, str):
        raise BadTrace("note: a text is expected")
    id_ = document.get("id", document.get("trace_id"))
    return make_record(
        id_, document.get("input"), document.get("output"), steps or [], metadata or {}, label_of(label), note
    )


def make_record(
    id_: Any, input_: Any, output: Any, steps: Any, metadata: Any, label: Label | None = None, note: str = ""
) -> TraceRecord:
    """Makes a record after checking sizes and ids. A trace without an id is named after its content digest."""
    data = {"input": input_, "output": output, "steps": steps, "metadata": metadata}
    try:
        content = json.dumps(data, sort_keys=True, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    except (ValueError, RecursionError) as error:
        raise BadTrace(f"the trace cannot be written as JSON: {error}") from None
    if len(content) > MAX_TRACE_BYTES:
        raise BadTrace(f"the trace has {len(content)} bytes, at most {MAX_TRACE_BYTES} are kept; shorten its steps")
    digest = hashlib.sha256(content).hexdigest()
    id_text = _id_of(id_, digest)
    return TraceRecord(id_text, json.loads(content), digest, label, note[:MAX_NOTE_CHARS], size_bytes=len(content))


def _id_of(value: Any, digest: str) -> str:
    if value is None or value == "":
        return digest[:32]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadTrace("id: a text is expected")
    text = str(value)
    if len(text) > MAX_ID_CHARS:
        raise BadTrace(f"id: at most {MAX_ID_CHARS} characters are possible, this one has {len(text)}")
    if not text.isprintable() or text != text.strip():
        raise BadTrace("id: it has characters that cannot be printed, or blanks around it")
    return text


def label_of(value: Any) -> Label | None:
    """Maps the label in a file, in any of the usual words, to our own."""
    if value is None or value == "":
        return None
    if isinstance(value, Mapping):
        value = value.get("rating", value.get("label", value.get("value")))
    word = str(value).strip().casefold()
    if word in POSITIVE:
        return Label.POSITIVE
    if word in NEGATIVE:
        return Label.NEGATIVE
    raise BadTrace(f"label: {word[:40]!r} is neither positive nor negative")
