"""What every reader gives: items, and how far it has read. Pure."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from runner.contract.harness import MAX_ID_CHARS, MAX_REASON_CHARS, MAX_TEXT_CHARS
from runner.reporting.truncation import clean

MAX_SAMPLE_INDEX = 10_000
MAX_DOCUMENT_BYTES = 256 << 20
"""For a file that must be parsed as a whole."""


class Unreadable(ValueError):
    """The file is not what its format promises; the text says why."""


@dataclass(frozen=True)
class HarnessItem:
    """One judged answer. `score` is None if the harness failed on it, so that it does not count."""

    id: str
    score: float | None
    sample_index: int = 0
    input: str = ""
    output: str = ""
    reason: str = ""


@dataclass
class Progress:
    """How far a file was read, and what it says about its length. A reader updates it."""

    mark: int = 0
    """Where the next reading begins; 0 for the beginning. What it counts depends on the format."""
    expected: int | None = None
    """The number of items at the end, if the file says so."""
    final: bool = False
    """The harness has ended: an unfinished last line counts."""


Reader = Callable[[BinaryIO, str, Progress], Iterator[HarnessItem]]
"""Reads what was added since `Progress.mark`. The text is the file's name. Raises `Unreadable`."""


def text_of(value: Any) -> str:
    """Any JSON value as a text for people."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def number_of(value: Any) -> float | None:
    """A finite number or a truth value as a number; None for anything else."""
    try:
        return float(value) if isinstance(value, bool | int | float) and math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def whole_document(file: BinaryIO) -> bytes:
    content = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise Unreadable(f"it is larger than {MAX_DOCUMENT_BYTES} bytes")
    return content


def bounded(item: HarnessItem) -> HarnessItem:
    """Within the limits of a run's items. A score that is not between 0 and 1 does not count, and the reason says so."""
    score, reason = item.score, item.reason
    if score is not None and not 0 <= score <= 1:
        score, reason = None, f"its score {score:g} is not between 0 and 1, so it does not count. {reason}"
    return HarnessItem(
        id=clean(item.id.strip()[:MAX_ID_CHARS]) or "item",
        score=score,
        sample_index=min(max(item.sample_index, 0), MAX_SAMPLE_INDEX),
        input=clean(item.input[:MAX_TEXT_CHARS]),
        output=clean(item.output[:MAX_TEXT_CHARS]),
        reason=clean(reason[:MAX_REASON_CHARS]),
    )
