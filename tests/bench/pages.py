"""How long the server needs for the first view of pages with much on them.

    .venv/bin/python -m tests.bench.pages [RUNS] [ITEMS] [ANSWER_BYTES]

A database with RUNS runs, one of which has ITEMS results with answers of ANSWER_BYTES each, behind the real service in a
process of its own. Each page is asked for ten times over one connection; the first is shown apart, and so is the
processor time that one view takes.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import create_engine
from sqlmodel import Session

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.db.migrate import migrate
from orchestrator.db.prepared import Prepared
from orchestrator.runs.tables import AttemptUsage, ContainerRun, ItemRow
from orchestrator.system.identifiers import uuid7
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome
from tests.faults.service import TOKEN, Service
from tests.rows import a_benchmark_task, a_model, a_run, an_attempt, an_item

ROUNDS = 10
TEMPLATES = 50
KEYS = {"fruitless": "attempts_without_progress"}
"""Columns whose attribute has another name."""
MODELS = 20
NOW = datetime.now(UTC)
WORDS = [
    f"{first}{last}" for first in "abcdefghij" for last in ("lpha", "eta", "amma", " = x + 1\n", "(n):\n    ", "return ")
]
OUTCOMES = [each.value for each in Outcome if each not in NOT_THE_MODELS_FAULT]


def an_ended_run(rng: random.Random, at: datetime, items: int, digest: str) -> ContainerRun:
    ids = [f"p{number}" for number in range(items)]
    task = a_benchmark_task(pack_digest=digest, problem_ids=ids)
    passed = rng.randint(items // 3, items)
    share = passed / items
    score = {"estimate": share, "low": share - 0.05, "high": min(1.0, share + 0.05), "n": items, "passed": passed}
    return a_run(
        rng.randint(1, MODELS), items=items, now=at, task=task, status="completed", attempt=1, items_done=items,
        items_passed=passed, score={**score, "n_all": items, "estimate_all": share, "comparable": True},
        started_at=at, completed_at=at,
    )  # fmt: skip


def results(rng: random.Random, run_id: str, items: range, texts: list[str]) -> Iterator[ItemRow]:
    tests = [{"index": n, "outcome": "wrong_answer", "expected": "a\n" * 90, "got": "b\n" * 90} for n in range(12)]
    for number in items:
        text = texts[number % len(texts)]
        outcome = rng.choices(OUTCOMES, weights=[12, *(1 for _ in OUTCOMES[1:])])[0]
        data = {"benchmark": "sample", "problem_id": f"p{number}", "outcome": outcome, "answer": text, "tests": tests}
        yield an_item(
            run_id, f"p{number}", position=number, outcome=outcome, parity_outcome=rng.choice(("passed", outcome)),
            detail="test 3 of 12: not the expected answer", tests_total=12, tests_passed=4, output_tokens=900,
            data={**data, "code": text[:40_000]},
        )  # fmt: skip


def add_runs(session: Session, rng: random.Random, templates: list[ContainerRun], ages: range) -> None:
    """One run for each age in minutes, oldest first: copies of the templates with an id and times of their own, because
    making each of 100,000 as an object takes minutes."""
    table: Any = ContainerRun.__table__  # type: ignore[attr-defined]
    names = [column.name for column in table.columns]
    insert = Prepared(table.insert())
    rows = [{name: getattr(run, KEYS.get(name, name)) for name in names} for run in templates]
    for start in range(0, len(ages), 10_000):
        part = []
        for age in ages[start : start + 10_000]:
            at = NOW - timedelta(minutes=age)
            new = {"id": uuid7(at), "created_at": at, "started_at": at, "completed_at": at}
            part.append({**rng.choice(rows), **new})
        insert.run_many(session.connection(), part)


def seed(data: Path, runs: int, items: int, size: int) -> list[str]:
    """Answers with the ids of two runs that have results."""
    rng = random.Random(1)
    url = f"sqlite:///{data / 'benchyard.db'}"
    migrate(url)
    catalogue = Catalogue(data)
    catalogue.prepare()
    digest = catalogue.get("sample").pack_digest
    texts = ["".join(rng.choices(WORDS, k=size // 6))[:size] for _ in range(20)]
    with Session(create_engine(url)) as session:
        session.add_all(a_model(f"m{number}") for number in range(1, MODELS + 1))
        session.flush()
        templates = [an_ended_run(rng, NOW, 100, digest) for _ in range(TEMPLATES)]
        add_runs(session, rng, templates, range(runs, 2, -1))
        large = [an_ended_run(rng, NOW - timedelta(minutes=n), items, digest) for n in (2, 1)]
        session.add_all(large)
        session.commit()
        ids = [run.id for run in large]
        for run_id in ids:
            session.add(an_attempt(run_id, token=None, ended_at=NOW, removed_at=NOW, exit_code=0))
            session.flush()
            samples: list[Any] = [[n, n / 4, 1 << 27, n / 8] for n in range(240)]
            session.add(AttemptUsage(run_id=run_id, number=1, samples=samples))
            for start in range(0, items, 250):
                session.add_all(results(rng, run_id, range(start, min(start + 250, items)), texts))
                session.commit()
                session.expunge_all()
    return ids


def cpu_ms(pid: int) -> float:
    """Processor time of the service: it says the same on a busy machine."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def measure(service: Service, paths: dict[str, str]) -> None:
    print(f"{'page':40} {'first':>8} {'p50':>8} {'most':>8} {'CPU':>8} {'size':>9}")
    with httpx.Client(base_url=service.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        client.get("/healthz")
        for name, path in paths.items():
            waits = []
            used = cpu_ms(service.pid)
            for _ in range(ROUNDS):
                began = time.monotonic()
                answer = client.get(path)
                waits.append(1000 * (time.monotonic() - began))
                assert answer.status_code == 200, (path, answer.text[:300])
            later = waits[1:]
            figures = f"{waits[0]:5.0f} ms {statistics.median(later):5.0f} ms {max(later):5.0f} ms"
            each = (cpu_ms(service.pid) - used) / ROUNDS
            print(f"{name:40} {figures} {each:5.0f} ms {len(answer.content) // 1024:5} KiB")


def main() -> None:
    given = [int(each) for each in sys.argv[1:]]
    runs, items, size = [*given, *(10_000, 5_000, 1_000_000)[len(given) :]]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        began = time.monotonic()
        one, other = seed(Path(directory), runs, items, size)
        print(f"{runs} runs, twice {items} items with answers of {size} bytes; made in {time.monotonic() - began:.0f} s")
        service = Service(Path(directory), engine="process", reconcile_s=3600)
        try:
            service.start()
            paths = {
                "overview": "/",
                "runs": "/runs",
                "runs, filtered": "/runs?status=completed&model=3&benchmark=sample",
                "runs, a filter that matches nothing": "/runs?status=failed",
                "run": f"/runs/{one}",
                "run, one outcome, later page": f"/runs/{one}?outcome=passed&after=2500",
                "item": f"/runs/{one}/items/7",
                "compare": f"/compare?run={one}&run={other}",
                "leaderboard": "/leaderboard?benchmark=sample",
                "model": "/models/m3",
                "dataset": "/datasets/sample",
            }
            measure(service, paths)
        finally:
            service.close()


if __name__ == "__main__":
    main()
