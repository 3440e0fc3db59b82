"""Tokens and finish reasons in one shape for all providers. Pure values; `wires` fill them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
