"""Spans as plain values, and who takes them. A leaf: it knows no library; `orchestrator.metrics.otlp` sends them.

All spans of a run are in one trace, whose id is the run's id; the ids of its spans are made from their names. So a process
needs to remember nothing between a run's spans, and two orchestrators that report the same span report it once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

Attribute = str | int | float | bool | tuple[str, ...]
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


@dataclass(frozen=True)
class SpanRecord:
    """A span that has ended. `error` is a short word or code, never a text of a provider or a user."""

    name: str
    trace_id: int
    span_id: int
    started_at: datetime
    ended_at: datetime
    parent_id: int | None = None
    kind: str = "internal"  #: internal, server or client
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    error: str | None = None


class Telemetry(Protocol):
    @property
    def wanted(self) -> bool:
        """False: nobody looks at spans, so none need be made."""

    def record(self, span: SpanRecord) -> None:
        """Must not raise, and must not wait for the network."""

    def close(self) -> None:
        """Sends what is left. May wait."""


class NoTelemetry:
    wanted = False

    def record(self, span: SpanRecord) -> None:
        """Nothing is sent."""

    def close(self) -> None:
        """Nothing is open."""


def trace_of_run(run_id: str) -> int:
    try:
        return UUID(run_id).int
    except ValueError:
        return _number(run_id, 16)


def span_of(run_id: str, *names: object) -> int:
    """The id of a span of a run: of the run itself, of `attempt` 1, of a call."""
    return _number("/".join(map(str, (run_id, *names))), 8)


def incoming(traceparent: str | None) -> tuple[int, int] | None:
    """Trace and parent span that a caller sent (W3C Trace Context), if it did."""
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match is None:
        return None
    trace_id, span_id = int(match[1], 16), int(match[2], 16)
    return (trace_id, span_id) if trace_id and span_id else None


def _number(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size]) or 1
