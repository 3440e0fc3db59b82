"""The interface of all protocols, used by `edge.router`, `upstream` and the demo provider.

A message is the provider's final answer as plain JSON, as a request without streaming receives it. Streams are made from
messages and assembled into them, so that an answer is stored once and delivered in either form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from orchestrator.gateway.edge.errors import GatewayError
from orchestrator.gateway.protocols.sse import Event
from runner.contract import run_spec


class Finish(StrEnum):
    """Why the model stopped."""

    STOP = "stop"  #: finished, or reached a stop sequence
    LENGTH = "length"  #: reached the request's token limit
    CONTEXT_WINDOW = "context_window"  #: the model's context is full
    REFUSAL = "refusal"  #: the model declined
    CONTENT_FILTER = "content_filter"  #: the provider's filter intervened
    TOOL_USE = "tool_use"  #: it asks for a tool call
    PAUSE = "pause"  #: the provider paused a long turn
    OTHER = "other"  #: a reason that is not in this list


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of a call. `input_tokens` includes cached and cache-written ones, `output_tokens` includes reasoning."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False


Message = dict[str, Any]

PIECE_CHARS = 512
"""Streamed text goes out in pieces of this many characters."""
TOKEN_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
"""Names of the output token limit. A server may obey a name that its protocol does not have."""
MOST_TOKENS = 10**9
"""A larger count for one answer is not believed."""


@dataclass(frozen=True)
class CallRequest:
    """What the gateway needs to know of a request."""

    model: str
    stream: bool
    prompt_text: str
    max_output_tokens: int | None
    answers: int = 1


@dataclass(frozen=True)
class PlainReply:
    """An answer that no provider made, for `Wire.compose`."""

    id: str
    model: str
    created: int
    text: str
    thinking: str
    finish: Finish
    usage: TokenUsage


class BadStream(Exception):
    """The provider's stream or answer violates its protocol. `excerpt` is its raw text, which may contain secrets."""

    def __init__(self, why: str, excerpt: str = "") -> None:
        super().__init__(why)
        self.excerpt = excerpt


class StreamedError(Exception):
    """The provider reported an error inside its stream."""

    def __init__(self, kind: str, body: Mapping[str, Any]) -> None:
        super().__init__(str(body.get("message") or kind))
        self.kind = kind
        self.body = body


def reported_error(data: Message) -> StreamedError | None:
    """The error in an event or answer of an OpenAI-compatible server, in any of the usual shapes."""
    error = data.get("error")
    if data.get("object") == "error":
        error = data
    if not error:
        return None
    body = dict(error) if isinstance(error, dict) else {"message": str(error)}
    return StreamedError(str(body.get("code") or body.get("type") or "server_error"), body)


class Assembler(Protocol):
    """Assembles a message from a stream. Feed it every event; `complete` tells a whole answer from a truncated one,
    `over` that no more events will come."""

    size: int

    def feed(self, event: Event) -> None:
        """Process one event; raises `BadStream` or `StreamedError`."""

    @property
    def complete(self) -> bool: ...

    @property
    def over(self) -> bool: ...

    def message(self) -> Message: ...


class Wire(Protocol):
    """One protocol of one kind of provider."""

    protocol: run_spec.Protocol
    path: str
    last_words: tuple[bytes, ...]
    """Bytes that mark the end of an answer, or an error, in a stream; they are passed on without delay."""

    def read(self, body: Message) -> CallRequest:
        """Raises `ValueError` with a sentence if the body is not a request of this protocol."""

    def outgoing(self, body: Message) -> Message:
        """The body for the provider: always streamed, so that a slow answer can be told from a dead connection."""

    def assembler(self) -> Assembler: ...

    def check(self, message: Message) -> None:
        """Raises `BadStream` or `StreamedError` if a whole answer does not follow this protocol."""

    def stream(self, message: Message, body: Message) -> Iterator[bytes]: ...

    def usage(self, message: Message) -> TokenUsage | None: ...

    def finish(self, message: Message) -> Finish: ...

    def compose(self, reply: PlainReply) -> Message: ...

    def error_body(self, error: GatewayError) -> Message: ...

    def error_event(self, error: GatewayError) -> bytes:
        """An error after the stream has begun."""

    def ping(self) -> bytes:
        """Keeps a stream alive while there is nothing to send."""


def pieces(text: str | None) -> Iterator[str]:
    """The text in pieces; some servers send null for an empty text."""
    text = text or ""
    for start in range(0, len(text), PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]


def texts_of(value: Any) -> Iterator[str]:
    """All texts of a prompt in reading order: plain strings, and parts with a `text`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)
    elif isinstance(value, dict):
        yield from texts_of(value.get("text"))
        yield from texts_of(value.get("content"))


def count(value: Any) -> int:
    """A token count as providers send it; 0 if it is not a plausible number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_TOKENS:
        return 0
    return int(value)


def part_of(usage: Message, name: str) -> Message:
    """The details in a usage object, if any."""
    details = usage.get(name)
    return details if isinstance(details, dict) else {}


def unless_empty(usage: TokenUsage) -> TokenUsage | None:
    """None if all counts are 0: no answer uses nothing, so the server does not count."""
    return usage if usage.input_tokens or usage.output_tokens else None


def positive(body: Message, *names: str) -> int | None:
    """The largest of the named limits: whichever of them a server obeys, it gives no more than that.

    Raises `ValueError` if one of them is not a positive integer.
    """
    limits = {name: body[name] for name in names if body.get(name) is not None}
    for name, value in limits.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a positive whole number")
    return max(limits.values(), default=None)
