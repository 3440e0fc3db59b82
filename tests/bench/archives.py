"""The archive of a large run: how long it takes, and how much memory, against the size of what it holds.

    .venv/bin/python -m tests.bench.archives [ITEMS] [KILOBYTES]

SQLite in a temporary directory, 5,000 results of 1 MB by default. Prints one line of JSON; memory is the growth of the
process's peak from before the first byte is read.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlmodel import Session

from orchestrator.archives.format.contents import contents_of
from orchestrator.db.migrate import migrate
from orchestrator.db.session import Database
from tests.rows import a_model, a_run, an_item


def filled(url: str, items: int, size: int) -> str:
    """A run with so many results; all but the first are copies made by the database."""
    migrate(url)
    answer = "".join(f"{number:x} " for number in range(size // 5))[:size]
    run = a_run(items=items, status="completed", items_done=items)
    run_id = run.id
    data = {"benchmark": "sample", "problem_id": "p", "outcome": "passed", "answer": answer, "calls": []}
    engine = create_engine(url)
    with Session(engine) as session:
        session.add(a_model(id=1))
        session.flush()
        session.add(run)
        session.flush()
        session.add(an_item(run_id, "p00000", data=data, answer_digest="0" * 64))
        session.commit()
    columns = [column.name for column in type(an_item("")).__table__.columns]  # type: ignore[attr-defined]
    new = {"position": ":n", "problem_id": "'p' || printf('%05d', :n)"}
    chosen = ", ".join(new.get(column, column) for column in columns)
    query = f"INSERT INTO item_results ({', '.join(columns)}) SELECT {chosen} FROM item_results WHERE position = 0"
    with engine.begin() as connection:
        for number in range(1, items):
            connection.execute(text(query), {"n": number})
    engine.dispose()
    return run_id


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def archive(url: str, run_id: str, folder: Path) -> dict[str, float]:
    db = Database(url)
    before, began = peak_mb(), time.monotonic()
    contents = await contents_of(db, folder, run_id, max_bytes=1 << 40)
    measured = time.monotonic()
    packed = 0
    async for piece in contents.tar_gz():
        packed += len(piece)
    ended, after = time.monotonic(), peak_mb()
    await db.close()
    held = sum(member.size_bytes for member in contents.members)
    return {
        "held_mb": round(held / 1e6, 1),
        "archive_mb": round(packed / 1e6, 1),
        "memory_mb": round(after - before, 1),
        "measuring_s": round(measured - began, 1),
        "writing_s": round(ended - measured, 1),
    }


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    kilobytes = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/bench.db"
        run_id = filled(url, items, kilobytes * 1000)
        print(json.dumps({"items": items, **asyncio.run(archive(url, run_id, Path(folder)))}))


if __name__ == "__main__":
    main()
