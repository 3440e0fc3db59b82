"""A SQLite database with a million results: one run is made as the service would, the database copies it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, text
from sqlmodel import Session, SQLModel

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.db.migrate import migrate
from orchestrator.runs.reports.scores import samples_of
from orchestrator.runs.tables import Attempt, ContainerRun, Event, ItemRow
from orchestrator.schedules.tables import Schedule
from orchestrator.system.identifiers import uuid7
from tests.rows import a_benchmark_task, a_model, a_run, an_attempt, an_item

MODELS = 20
COUNT = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < :last) "


@dataclass(frozen=True)
class Stored:
    items_per_run: int = 100
    minutes_apart: int = 60
    answer: str = "x = 1\n" * 100


def fill(data: Path, runs: int, stored: Stored | None = None, *, now: datetime | None = None) -> list[str]:
    """That many ended runs up to now, with attempts, results and events; returns the ids of the newest two."""
    stored = stored or Stored()
    url = f"sqlite:///{data / 'benchyard.db'}"
    migrate(url)
    catalogue = Catalogue(data)
    catalogue.prepare()
    engine = create_engine(url)
    first = (now or datetime.now(UTC)) - timedelta(minutes=stored.minutes_apart * runs)
    _template(engine, first, catalogue.get("sample").pack_digest, stored)
    if runs > 1:
        _copies(engine, runs - 1, first, stored)
    engine.dispose()
    times = [first + timedelta(minutes=stored.minutes_apart * number) for number in (runs - 1, max(0, runs - 2))]
    return [run_id(at) for at in times]


def run_id(at: datetime) -> str:
    """As of a run that was created then: ids sort by time."""
    return uuid7(at.replace(microsecond=0), bytes(10))


def _template(engine: Engine, at: datetime, digest: str, stored: Stored) -> None:
    count = stored.items_per_run
    ids = [f"p{number}" for number in range(count)]
    passed = count // 2
    score: dict[str, Any] = {"estimate": 0.5, "low": 0.4, "high": 0.6, "n": count, "passed": passed}
    plan = a_benchmark_task(pack_digest=digest, problem_ids=ids)
    score |= {"samples": samples_of(plan.benchmarks, {"sample": "1"})}
    data = {"benchmark": "sample", "answer": stored.answer, "code": "x = 1", "tests": []}
    with Session(engine) as session:
        session.add_all(a_model(f"m{number}", id=number) for number in range(1, MODELS + 1))
        session.flush()
        session.add(
            a_run(
                1, id=run_id(at), items=count, now=at, task=plan,
                status="completed", attempt=1, items_done=count, items_passed=passed, started_at=at, completed_at=at,
                score={**score, "n_all": count, "estimate_all": 0.5, "comparable": True},
            )
        )  # fmt: skip
        session.flush()
        session.add(an_attempt(run_id(at), token=None, dispatched_at=at, ended_at=at, removed_at=at, exit_code=0))
        for number, problem in enumerate(ids):
            outcome = "passed" if number % 2 == 0 else "wrong_answer"
            result = {**data, "problem_id": problem, "outcome": outcome}
            session.add(an_item(run_id(at), problem, position=number, outcome=outcome, data=result))
            told = {"problem_id": problem, "done": number + 1}
            session.add(Event(run_id=run_id(at), attempt=1, seq=number + 1, type="progress", data=told, at=at))
        session.commit()


def _copies(engine: Engine, last: int, first: datetime, stored: Stored) -> None:
    seconds = 60 * stored.minutes_apart
    moment = f"strftime('%Y-%m-%d %H:%M:%S.000000', '{first:%Y-%m-%d %H:%M:%S}', (k * {seconds}) || ' seconds')"
    milliseconds = f"printf('%012x', {1000 * (int(first.timestamp()))} + k * {1000 * seconds})"
    new_id = f"substr({milliseconds}, 1, 8) || '-' || substr({milliseconds}, 9) || '{run_id(first)[13:]}'"
    times = dict.fromkeys(("created_at", "started_at", "completed_at"), moment)
    gone = dict.fromkeys(("dispatched_at", "ended_at", "removed_at"), moment)
    run = {"id": new_id, "model_id": f"1 + k % {MODELS}", **times}
    attempt = {"run_id": new_id, "container_name": "'c' || k", **gone}
    with engine.begin() as connection:
        for table, key, changed in (
            (ContainerRun, "id", run), (Attempt, "run_id", attempt), (ItemRow, "run_id", {"run_id": new_id}),
            (Event, "run_id", {"run_id": new_id, "at": moment}),
        ):  # fmt: skip
            connection.execute(text(_copy(table, key, changed)), {"last": last, "first": run_id(first)})


def _copy(table: type[SQLModel], key: str, changed: dict[str, str]) -> str:
    """Copies the rows of the first run once for each k; an event gets a number from the database."""
    columns: list[Any] = list(table.__table__.columns)  # type: ignore[attr-defined]
    names = [column.name for column in columns if not (table is Event and column.name == "id")]
    values = ", ".join(changed.get(name, f"t.{name}") for name in names)
    into = f"INSERT INTO {table.__tablename__} ({', '.join(names)})"
    return f"{into} {COUNT} SELECT {values} FROM n CROSS JOIN {table.__tablename__} t WHERE t.{key} = :first"


def add_schedules(data: Path, count: int) -> None:
    """A daily schedule for some of the models; they do not fire while something is measured."""
    later = datetime.now(UTC) + timedelta(days=1)
    engine = create_engine(f"sqlite:///{data / 'benchyard.db'}")
    with Session(engine) as session:
        for model_id in range(1, count + 1):
            session.add(
                Schedule(
                    model_id=model_id, cron_expression="0 3 * * *", sample_size=3, benchmarks=["sample"],
                    next_fire_at=later, created_at=later, updated_at=later,
                )
            )  # fmt: skip
        session.commit()
    engine.dispose()
