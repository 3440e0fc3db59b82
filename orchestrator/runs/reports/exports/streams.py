"""Reads the results of runs and streams them in a format, with one page of results in memory at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import NotFound
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.reports.exports import inspect_log, junit, lines
from orchestrator.runs.reports.exports.inspect_log import InspectLog
from orchestrator.runs.reports.exports.zip_stream import ZipStream
from orchestrator.runs.reports.model_names import model_name
from orchestrator.runs.tables import ContainerRun, ItemRow

PAGE_ROWS = 200
PAGE_CHARS = 4 << 20
"""A page ends with the result that exceeds either."""


@dataclass(frozen=True)
class ExportedRun:
    run: ContainerRun
    model: LlmModel | None
    name: str | None
    """How exports name the model."""


async def exported_run(db: Database, run_id: str) -> ExportedRun:
    def read(session: Session) -> ExportedRun:
        run = run_queries.get(session, run_id)
        if run is None:
            raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists the existing ones")
        model = model_queries.get(session, run.model_id)
        return ExportedRun(run, model, model_name(run.kind, model.slug if model else None))

    return await db.read(read)


async def pages(db: Database, run_id: str) -> AsyncIterator[Sequence[ItemRow]]:
    """The results of a run in plan order."""
    after = -1
    while rows := await db.read(lambda session, after=after: _page(session, run_id, after)):  # type: ignore[misc]
        yield rows
        after = rows[-1].position


def _page(session: Session, run_id: str, after: int) -> Sequence[ItemRow]:
    rows: list[ItemRow] = []
    size = 0

    def take(row: ItemRow) -> bool:
        nonlocal size
        rows.append(row)
        size += sum(len(str(row.data.get(name) or "")) for name in ("prompt", "answer", "code", "tests"))
        return len(rows) < PAGE_ROWS and size < PAGE_CHARS

    item_queries.each_whole(session, run_id, after=after, take=take)
    return rows


async def named_pages(db: Database, runs: Sequence[ExportedRun]) -> AsyncIterator[tuple[str | None, Sequence[ItemRow]]]:
    """The results of several runs, each page with the name of the model."""
    for exported in runs:
        async for rows in pages(db, exported.run.id):
            yield exported.name, rows


async def as_jsonl(db: Database, runs: Sequence[ExportedRun]) -> AsyncIterator[str]:
    async for model, rows in named_pages(db, runs):
        yield await asyncio.to_thread(lines.as_jsonl, rows, model)


async def as_csv(db: Database, runs: Sequence[ExportedRun]) -> AsyncIterator[str]:
    yield lines.csv_head()
    async for model, rows in named_pages(db, runs):
        yield await asyncio.to_thread(lines.as_csv, rows, model)


async def as_json(db: Database, run_id: str, info: dict[str, Any]) -> AsyncIterator[str]:
    """`info` is what the document says before the results."""
    yield lines.json_head(info)
    first = True
    async for rows in pages(db, run_id):
        yield await asyncio.to_thread(lines.as_json_items, rows, first)
        first = False
    yield lines.JSON_TAIL


async def as_junit(db: Database, exported: ExportedRun) -> AsyncIterator[str]:
    run, model = exported.run, exported.name
    counts = await db.read(lambda session: item_queries.counts_by_benchmark(session, run.id))
    yield junit.head(run, model, counts)
    suite: str | None = None
    async for rows in pages(db, run.id):
        parts = []
        for benchmark in dict.fromkeys(row.benchmark for row in rows):
            if benchmark != suite:
                parts.append(junit.SUITE_TAIL if suite is not None else "")
                parts.append(junit.suite_head(run, model, benchmark, counts.get(benchmark, {})))
                suite = benchmark
            parts.append(await asyncio.to_thread(junit.cases, [row for row in rows if row.benchmark == benchmark]))
        yield "".join(parts)
    yield (junit.SUITE_TAIL if suite is not None else "") + junit.TAIL


async def as_inspect(db: Database, exported: ExportedRun, now: datetime) -> AsyncIterator[bytes]:
    """The results are read twice: once for the samples, once for the summaries."""
    log = InspectLog(exported.run, exported.model, exported.name or "none/none")
    archive = ZipStream(now)

    def samples(rows: Sequence[ItemRow]) -> bytes:
        return b"".join(archive.member(log.member(row), _json(log.sample(row))) for row in rows)

    def summaries(rows: Sequence[ItemRow], first: bool) -> bytes:
        text = b",".join(_json(log.summary(row)) for row in rows)
        return archive.write(text if first else b"," + text)

    yield archive.member(inspect_log.START, _json(log.start()))
    async for rows in pages(db, exported.run.id):
        yield await asyncio.to_thread(samples, rows)
    yield archive.begin(inspect_log.SUMMARIES) + archive.write(b"[")
    first = True
    async for rows in pages(db, exported.run.id):
        yield await asyncio.to_thread(summaries, rows, first)
        first = False
    yield archive.write(b"]") + archive.end()
    counts: Mapping[str, int] = await db.read(lambda session: item_queries.outcome_counts(session, exported.run.id))
    yield archive.member(inspect_log.HEADER, _json(log.header(counts))) + archive.close()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
