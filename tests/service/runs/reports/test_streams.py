"""Exports are streamed: what is in memory does not grow with the run, on both databases."""

from __future__ import annotations

import asyncio
import io
import json
import tracemalloc
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pyarrow import parquet
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.runs.reports.exports import streams
from orchestrator.runs.reports.exports.parquet.stream import as_parquet
from tests.manual_clock import START
from tests.rows import a_benchmark_task, a_model, a_run, an_item

pytestmark = pytest.mark.anyio

MIB = 1 << 20


async def filled(database: Database, items: int, chars: int = 10, **changed: Any) -> str:
    run = a_run(items=items, status="completed", **changed)
    run_id = run.id

    def begin(session: Session) -> None:
        session.add(a_model("m1"))
        session.flush()
        session.add(run)

    await database.write(begin)
    names = run.benchmarks
    for first in range(0, items, 2000):

        def fill(session: Session, first: int = first) -> None:
            for number in range(first, min(first + 2000, items)):
                data = {"prompt": f"{number} ".ljust(chars, "p"), "answer": str(number)}
                name = names[number * len(names) // items]
                session.add(an_item(run_id, f"p{number}", benchmark=name, position=number, data=data))

        await database.write(fill)
    return run_id


async def whole(pieces: AsyncIterator[str | bytes]) -> bytes:
    return b"".join([piece.encode() if isinstance(piece, str) else piece async for piece in pieces])


async def size_of(pieces: AsyncIterator[str | bytes]) -> int:
    return sum([len(piece) async for piece in pieces])


async def test_a_run_without_results_is_exported_too(database: Database) -> None:
    exported = await streams.exported_run(database, await filled(database, 0))
    archive = zipfile.ZipFile(io.BytesIO(await whole(streams.as_inspect(database, exported, START))))
    assert json.loads(archive.read("summaries.json")) == []
    assert len(ElementTree.fromstring(await whole(streams.as_junit(database, exported)))) == 0
    table = await whole(as_parquet(streams.named_pages(database, [exported])))
    assert parquet.read_table(io.BytesIO(table)).num_rows == 0


async def test_every_item_is_in_every_format_across_pages(database: Database) -> None:
    task = a_benchmark_task()
    task.benchmarks.append(task.benchmarks[0].model_copy(update={"name": "other"}))
    run_id = await filled(database, 450, benchmarks=["sample", "other"], task=task)
    exported = await streams.exported_run(database, run_id)
    suites = ElementTree.fromstring(await whole(streams.as_junit(database, exported)))
    assert [(suite.get("name"), suite.get("tests"), len(suite.findall("testcase"))) for suite in suites] == [
        ("sample", "225", 225),
        ("other", "225", 225),
    ]
    archive = zipfile.ZipFile(io.BytesIO(await whole(streams.as_inspect(database, exported, START))))
    assert len(json.loads(archive.read("summaries.json"))) == 450
    assert "samples/other/p449_epoch_1.json" in archive.namelist()
    table = parquet.read_table(io.BytesIO(await whole(as_parquet(streams.named_pages(database, [exported])))))
    assert table.column("answer").to_pylist() == [str(number) for number in range(450)]
    lines = (await whole(streams.as_jsonl(database, [exported]))).splitlines()
    assert [json.loads(line)["position"] for line in lines] == list(range(450))


async def test_large_results_make_small_pages(database: Database) -> None:
    run_id = await filled(database, 20, chars=MIB)
    pages = [len(rows) async for rows in streams.pages(database, run_id)]
    assert (sum(pages), max(pages)) == (20, 4)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_a_receiver_that_leaves_ends_the_encoder(database: Database) -> None:
    exported = await streams.exported_run(database, await filled(database, 450))
    pieces = as_parquet(streams.named_pages(database, [exported]))
    assert await anext(pieces)
    await pieces.aclose()
    children = Path("/proc/self/task").glob("*/children")
    running = " ".join([await asyncio.to_thread(path.read_text) for path in children]).split()
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in running if Path(f"/proc/{pid}").exists()]
    assert not any(b"exports/parquet/worker" in command for command in commands)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_a_hundred_thousand_items_in_little_memory(database: Database) -> None:
    """Besides the page that is being written: the plan, and the directory of the zip."""
    run_id = await filled(database, 100_000, chars=3_000)
    exported = await streams.exported_run(database, run_id)
    peaks = {}
    for name, make in {
        "jsonl": lambda: streams.as_jsonl(database, [exported]),
        "csv": lambda: streams.as_csv(database, [exported]),
        "junit": lambda: streams.as_junit(database, exported),
        "parquet": lambda: as_parquet(streams.named_pages(database, [exported])),
        "inspect": lambda: streams.as_inspect(database, exported, START),
    }.items():
        tracemalloc.start()
        assert await size_of(make()) > 1_000_000
        peaks[name] = tracemalloc.get_traced_memory()[1] // MIB
        tracemalloc.stop()
    assert max(peaks.values()) < 64, peaks
