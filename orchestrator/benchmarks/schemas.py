"""Bodies of requests and answers of benchmarks."""

from __future__ import annotations

from datetime import date

from orchestrator.http.schemas import Answer


class BenchmarkOut(Answer):
    name: str
    adapter: str
    pack_digest: str
    problems: int
    difficulties: dict[str, int]
    first_date: date | None
    last_date: date | None
    description: str
    licence: str
    source: str
    default: bool
