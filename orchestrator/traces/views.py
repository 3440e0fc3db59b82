"""Prepares a trace for reading: collapsible texts, messages with their roles, single steps, formatted JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.dashboard.texts import visible

FOLD_CHARS = 1_500
FOLD_LINES = 24
MOST_CHARS = 60_000
LINE_CHARS = 160
STEPS_SHOWN = 100
MESSAGES_SHOWN = 60
ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "model", "human", "ai", "function"})


@dataclass(frozen=True)
class Text:
    """The beginning of a text, and the collapsed rest."""

    head: str
    rest: str = ""
    length: int = 0
    cut: bool = False
    """Even the rest is incomplete; the trace's JSON has all of it."""


@dataclass(frozen=True)
class Message:
    role: str
    text: Text


@dataclass(frozen=True)
class Value:
    """One of: nothing, a text, messages, or JSON."""

    kind: str
    text: Text | None = None
    messages: tuple[Message, ...] = ()
    more: int = 0


@dataclass(frozen=True)
class Step:
    title: str
    kind: str
    failed: bool
    parts: tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class TraceView:
    id: str
    number: int
    input: Value
    output: Value
    steps: tuple[Step, ...]
    more_steps: int
    metadata: tuple[tuple[str, str], ...] = field(default=())


def trace_view(trace_id: str, number: int, data: Mapping[str, Any]) -> TraceView:
    steps, metadata = data.get("steps") or [], data.get("metadata") or {}
    return TraceView(
        id=trace_id,
        number=number,
        input=value_view(data.get("input")),
        output=value_view(data.get("output")),
        steps=tuple(_step(index, step) for index, step in enumerate(steps[:STEPS_SHOWN])),
        more_steps=max(0, len(steps) - STEPS_SHOWN),
        metadata=tuple((visible(str(name)), one_line(value)) for name, value in list(metadata.items())[:STEPS_SHOWN]),
    )


def value_view(value: Any) -> Value:
    if value is None or value in ("", [], {}):
        return Value("nothing")
    if isinstance(value, str):
        return Value("text", text_view(value))
    if messages := _messages(value):
        views = tuple(Message(visible(role), text_view(text)) for role, text in messages[:MESSAGES_SHOWN])
        return Value("messages", messages=views, more=max(0, len(messages) - MESSAGES_SHOWN))
    return Value("json", text_view(pretty(value)))


def text_view(text: str) -> Text:
    length = len(text)
    lines = text[: FOLD_CHARS + 1].split("\n", FOLD_LINES)
    if length <= FOLD_CHARS and len(lines) <= FOLD_LINES:
        return Text(visible(text), length=length)
    head = "\n".join(lines[:FOLD_LINES])[:FOLD_CHARS]
    return Text(visible(head), visible(text[len(head) : MOST_CHARS].removeprefix("\n")), length, cut=length > MOST_CHARS)


def one_line(value: Any, chars: int = LINE_CHARS) -> str:
    """A value shortened to one line of a table."""
    messages = _messages(value)
    text = messages[-1][1] if messages else value if isinstance(value, str) else pretty(value, None)
    text = " ".join(text[: 4 * chars].split())
    return visible(text if len(text) <= chars else f"{text[:chars]}…")


def pretty(value: Any, indent: int | None = 2) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _messages(value: Any) -> list[tuple[str, str]]:
    """(role, text) pairs if the value is a conversation, otherwise an empty list."""
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list) and len(value) == 1:
        value = value["messages"]
    if isinstance(value, Mapping) and "role" in value:
        value = [value]
    if not isinstance(value, list) or not value:
        return []
    messages = []
    for entry in value:
        if not isinstance(entry, Mapping) or str(entry.get("role", "")).casefold() not in ROLES:
            return []
        content = entry.get("content", entry.get("parts"))
        rest = {key: item for key, item in entry.items() if key not in ("role", "content", "parts") and item}
        text = _content_text(content)
        messages.append((str(entry["role"]), text if not rest else f"{text}\n{pretty(rest)}".strip()))
    return messages


def _content_text(content: Any) -> str:
    """The text of a message; of a list of parts, the text parts as text and the others as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [
            str(part.get("text", part.get("content")))
            if isinstance(part, Mapping) and isinstance(part.get("text", part.get("content")), str)
            else part
            if isinstance(part, str)
            else pretty(part)
            for part in content
        ]
        return "\n".join(texts)
    return pretty(content)


def _step(index: int, step: Any) -> Step:
    if not isinstance(step, Mapping):
        return Step(f"step {index + 1}", "", False, (("", value_view(step)),))
    title = next((str(step[name]) for name in ("name", "title", "id") if step.get(name)), f"step {index + 1}")
    kind = str(step.get("type") or step.get("kind") or "")
    parts = [(name, value_view(step[name])) for name in ("input", "output", "error") if step.get(name) is not None]
    named = {"name", "title", "type", "kind", "input", "output", "error"}
    rest = {key: item for key, item in step.items() if key not in named and item not in (None, "", [], {})}
    if rest:
        parts.append(("more", value_view(rest)))
    failed = bool(step.get("error"))
    return Step(visible(title[:LINE_CHARS]), visible(kind[:40]), failed, tuple((name, view) for name, view in parts))
