"""A whole response taken apart into the events of its stream. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.gateway.protocols.protocol import Message, pieces

EventBody = dict[str, Any]


def response_events(response: Message) -> Iterator[EventBody]:
    """Every event of the stream, in order and without its number."""
    opening = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": opening}
    yield {"type": "response.in_progress", "response": opening}
    for index, item in enumerate(response["output"]):
        yield from _item(index, item)
    yield {"type": f"response.{response.get('status', 'completed')}", "response": response}


def _item(index: int, item: Message) -> Iterator[EventBody]:
    where = {"item_id": item.get("id", f"item_{index}"), "output_index": index}
    added, inner = {**item}, iter(())  # type: tuple[Message, Iterator[EventBody]]
    if item.get("type") == "message":
        added |= {"content": [], "status": "in_progress"}
        inner = _message(where, item)
    elif item.get("type") == "reasoning":
        added["summary"] = []
        inner = _reasoning(where, item)
    elif item.get("type") == "function_call":
        added |= {"arguments": "", "status": "in_progress"}
        inner = _arguments(where, item)
    yield {"type": "response.output_item.added", "output_index": index, "item": added}
    yield from inner
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _message(where: EventBody, item: Message) -> Iterator[EventBody]:
    for number, part in enumerate(item.get("content") or []):
        place = {**where, "content_index": number}
        kind, field = ("refusal", "refusal") if part.get("type") == "refusal" else ("output_text", "text")
        extra: EventBody = {} if kind == "refusal" else {"logprobs": []}
        empty = {**part, field: ""} | ({"annotations": []} if kind == "output_text" else {})
        yield {"type": "response.content_part.added", **place, "part": empty}
        for piece in pieces(part.get(field)):
            yield {"type": f"response.{kind}.delta", **place, "delta": piece, **extra}
        yield {"type": f"response.{kind}.done", **place, field: part.get(field) or "", **extra}
        yield {"type": "response.content_part.done", **place, "part": part}


def _reasoning(where: EventBody, item: Message) -> Iterator[EventBody]:
    for number, part in enumerate(item.get("summary") or []):
        place = {**where, "summary_index": number}
        yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
        for piece in pieces(part.get("text")):
            yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": part.get("text", "")}
        yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _arguments(where: EventBody, item: Message) -> Iterator[EventBody]:
    for piece in pieces(item.get("arguments")):
        yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
    yield {
        "type": "response.function_call_arguments.done",
        **where,
        "name": item.get("name"),
        "arguments": item.get("arguments", ""),
    }
