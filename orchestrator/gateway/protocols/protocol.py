"""What every protocol offers: the interface that `router`, `sender` and the demo provider are written against.

A message is the provider's own final answer as plain JSON: what a request without streaming gets. Streams are made from
it and put together into it, so that an answer is stored once and given in either form.
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

    STOP = "stop"  #: it was done, or met a stop sequence
    LENGTH = "length"  #: the token limit of the request
    CONTEXT_WINDOW = "context_window"  #: the model's context is full
    REFUSAL = "refusal"  #: the model declined
    CONTENT_FILTER = "content_filter"  #: the provider's filter stepped in
    TOOL_USE = "tool_use"  #: it wants a tool called
    PAUSE = "pause"  #: the provider paused a long turn
    OTHER = "other"  #: the provider said something that is not in this list


@dataclass(frozen=True)
class TokenUsage:
    """What a call used. `input_tokens` includes cached and cache-written ones, `output_tokens` includes reasoning."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False


Message = dict[str, Any]

PIECE_CHARS = 512
"""Streamed text goes out in pieces of this size."""
TOKEN_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
"""What servers call the limit of output tokens. One may obey a name that its protocol does not have."""
MOST_TOKENS = 10**9
"""A server that counts more in one answer has not counted."""


@dataclass(frozen=True)
class Asked:
    """What the gateway must know of a request."""

    model: str
    stream: bool
    prompt_text: str
    max_output_tokens: int | None
    answers: int = 1


@dataclass(frozen=True)
class PlainReply:
    """An answer that does not come from a provider, for `Wire.compose`."""

    id: str
    model: str
    created: int
    text: str
    thinking: str
    finish: Finish
    usage: TokenUsage


class BadStream(Exception):
    """The provider's stream or answer is not what its protocol says. `said`: its own words as they came, secrets and all."""

    def __init__(self, why: str, said: str = "") -> None:
        super().__init__(why)
        self.said = said


class StreamedError(Exception):
    """The provider reported an error inside its stream."""

    def __init__(self, kind: str, body: Mapping[str, Any]) -> None:
        super().__init__(str(body.get("message") or kind))
        self.kind = kind
        self.body = body


def told_error(data: Message) -> StreamedError | None:
    """The error that an event or an answer of an OpenAI-compatible server is, in whichever of the usual shapes."""
    error = data.get("error")
    if data.get("object") == "error":
        error = data
    if not error:
        return None
    body = dict(error) if isinstance(error, dict) else {"message": str(error)}
    return StreamedError(str(body.get("code") or body.get("type") or "server_error"), body)


class Assembler(Protocol):
    """Puts a stream together. Feed it every event; `complete` tells a whole answer from a cut one, `over` that no more
    will come."""

    size: int

    def feed(self, event: Event) -> None:
        """Take one event; raises `BadStream` or `StreamedError`."""

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
    """What a stream says when its answer is whole, or when there will be none: not to be kept waiting."""

    def read(self, body: Message) -> Asked:
        """Raises `ValueError` with a sentence when the body is not a request of this protocol."""

    def outgoing(self, body: Message) -> Message:
        """The body for the provider: always streamed, so that a slow answer can be told from a dead one."""

    def assembler(self) -> Assembler: ...

    def check(self, message: Message) -> None:
        """Raises `BadStream` or `StreamedError` when a whole answer is not one of this protocol."""

    def stream(self, message: Message, body: Message) -> Iterator[bytes]: ...

    def usage(self, message: Message) -> TokenUsage | None: ...

    def finish(self, message: Message) -> Finish: ...

    def compose(self, reply: PlainReply) -> Message: ...

    def error_body(self, error: GatewayError) -> Message: ...

    def error_event(self, error: GatewayError) -> bytes:
        """An error after the stream began."""

    def ping(self) -> bytes:
        """Keeps a stream alive while there is nothing to say."""


def pieces(text: str | None) -> Iterator[str]:
    """Some servers write null for a text that is empty."""
    text = text or ""
    for start in range(0, len(text), PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]


def texts_of(value: Any) -> Iterator[str]:
    """All texts of a prompt in reading order: plain strings, and parts that have a `text`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)
    elif isinstance(value, dict):
        yield from texts_of(value.get("text"))
        yield from texts_of(value.get("content"))


def count(value: Any) -> int:
    """A token count as providers send it; anything but a number that can be one is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_TOKENS:
        return 0
    return int(value)


def part_of(usage: Message, name: str) -> Message:
    """The details of a usage, if there are any."""
    details = usage.get(name)
    return details if isinstance(details, dict) else {}


def said(usage: TokenUsage) -> TokenUsage | None:
    """Nothing at all was used by no answer: a server that says so does not count."""
    return usage if usage.input_tokens or usage.output_tokens else None


def positive(body: Message, *names: str) -> int | None:
    """The largest of the named limits: no matter which of them a server obeys, it gives no more than that.

    Raises `ValueError` when one of them is not a positive whole number.
    """
    limits = {name: body[name] for name in names if body.get(name) is not None}
    for name, value in limits.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a positive whole number")
    return max(limits.values(), default=None)
