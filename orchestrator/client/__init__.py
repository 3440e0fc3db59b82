"""The Python client of a Benchyard service: `Benchyard`, which blocks, and `AsyncBenchyard`. See docs/python.md.

Importing it does not import the service: it needs `httpx`, `httpx-sse` and `pydantic` only.
"""

from orchestrator.client.benchyard import AsyncBenchyard, Benchyard
from orchestrator.client.errors import (
    ApiError,
    BenchyardError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Invalid,
    NotBenchyard,
    NotFound,
    RateLimited,
    StoreFailed,
    Unauthorized,
    Unavailable,
    WaitTimeout,
)
from orchestrator.client.steps import Retry, StreamEvent

__all__ = [
    "ApiError",
    "AsyncBenchyard",
    "Benchyard",
    "BenchyardError",
    "Conflict",
    "ConnectionFailed",
    "Forbidden",
    "Invalid",
    "NotBenchyard",
    "NotFound",
    "RateLimited",
    "Retry",
    "StoreFailed",
    "StreamEvent",
    "Unauthorized",
    "Unavailable",
    "WaitTimeout",
]
