"""A database that schema 0026 wrote, with runs of every kind, ended and waiting: after the upgrade it shows the same, and
what waits is carried out.

`database_0026.json.gz` holds the rows that a service of that version stored, and what its API answered about them."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import tarfile
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy.pool import NullPool

from orchestrator.db.migrate import alembic_config, check, migrate
from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine, Faults
from orchestrator.settings import Settings
from tests.manual_clock import ManualClock
from tests.served import RunnerClient, Service, served
from tests.service.commands.test_routes import stopwatch
from tests.service.evals.eval_runner import EvalRunner

pytestmark = pytest.mark.anyio

OLD: dict[str, Any] = json.loads(gzip.decompress(Path(__file__).with_name("database_0026.json.gz").read_bytes()))
NAMED, PENDING = OLD["named"], OLD["pending"]
STORED_ANSWERS = "stored-answers"
KIND = {"vcpu": 1, "memory_mib": 512, "disk_gb": 1}
SETTINGS: dict[str, Any] = {
    "command_images": ("py:*",),
    "max_instances": 50,
    "vcpu_capacity": 100,
    "webhook_allow": "127.0.0.0/8, localhost",
    "instance_types": {"one": KIND, "two": KIND},
    "default_instance_type": "one",
}


def make_old_database(url: str) -> None:
    command.upgrade(alembic_config(url), "0026")
    engine = sa.create_engine(url, poolclass=NullPool)
    tables = sa.MetaData()
    tables.reflect(engine)
    with engine.begin() as connection:
        for table in tables.sorted_tables:
            for row in OLD["rows"].get(table.name, []):
                values = {name: _value(value, table.c[name].type) for name, value in row.items()}
                connection.execute(table.insert().values(**values))
            numbers = [column.name for column in table.primary_key if column.name in ("id", "number")]
            if engine.dialect.name == "postgresql" and OLD["rows"].get(table.name) and numbers:
                sequence = f"pg_get_serial_sequence('{table.name}', '{numbers[0]}')"
                if connection.execute(sa.text(f"SELECT {sequence}")).scalar() is not None:
                    connection.execute(sa.text(f"SELECT setval({sequence}, (SELECT max({numbers[0]}) FROM {table.name}))"))


def _value(value: Any, type_: sa.types.TypeEngine[Any]) -> Any:
    if isinstance(value, dict) and set(value) == {"bytes"}:
        return base64.b64decode(value["bytes"])
    if isinstance(type_, sa.JSON) and isinstance(value, str):
        return json.loads(value)
    if isinstance(type_, sa.DateTime) and isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return bool(value) if isinstance(type_, sa.Boolean) and value is not None else value


@pytest.fixture
async def upgraded(empty_database_url: str, new_settings: Callable[..., Settings]) -> AsyncIterator[Service]:
    """The service on the old database, with an engine that does not answer yet."""
    make_old_database(empty_database_url)
    engine = FakeEngine(faults=Faults(unreachable=True))
    clock = ManualClock(datetime.fromisoformat(OLD["now"]))
    async with served(new_settings(DATABASE_URL=empty_database_url, **SETTINGS), engine=engine, clock=clock) as service:
        yield service
        await service.engine.end_all()


def expected(body: Any) -> Any:
    """The old answer. Only the placeholder's id is gone: a run of stored answers has a name for its model, and no model."""
    if isinstance(body, list):
        return [expected(entry) for entry in body]
    if not isinstance(body, dict):
        return body
    values = {name: expected(value) for name, value in body.items()}
    if values.get("model") == STORED_ANSWERS and "model_id" in values:
        values["model_id"] = None
    if "problem_ids" in values and "selection" in values:
        values |= {"parity": True, "judge": None, "judge_model_id": None}
    if {"reuse_answers", "known_cost_usd"} <= values.keys():  # a run
        values["judge_cost_usd"] = 0.0
    if {"slug", "input_price"} <= values.keys():  # a model
        values["notes"] = []
        values |= dict.fromkeys(("reasoning_price", "batch_input_price", "batch_output_price", "long_prompt_prices"))
        values |= dict.fromkeys(("price_source", "price_warning", "context_tokens"))
    if "lost_sends" in values and "call_key" in values:
        values["judge"] = False
    if "uid" in values and values["data"]["kind"] == "command":  # an alert
        values["model_id"] = None
    return values


async def test_the_api_shows_what_it_showed(upgraded: Service) -> None:
    for path, answer in OLD["answers"].items():
        now = await upgraded.client.get(path)
        shown = now.json() if isinstance(answer["body"], dict) else now.text
        before = expected(answer["body"])
        if path.endswith("format=csv"):  # columns were added, after the old ones
            shown = _first_columns(shown, next(csv.reader(io.StringIO(before))))
        elif path.endswith("format=jsonl"):
            shown, before = _without_new_names(shown), list(map(json.loads, before.splitlines()))
        if now.status_code >= 400:  # the words of a refusal may change; its code may not
            shown, before = ({**body, "detail": ""} for body in (shown, before))
        steady = _steady(before)
        assert (now.status_code, _without_later_names(_steady(shown), steady)) == (answer["status"], steady), path
    models = (await upgraded.client.get("/api/models", params={"archived": True})).json()["items"]
    assert [model["slug"] for model in models] == ["demo-strong", "demo-weak"]


def _first_columns(text: str, header: list[str]) -> str:
    rows = [row[: len(header)] for row in csv.reader(io.StringIO(text))]
    assert rows[0] == header
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()


def _without_new_names(text: str) -> list[Any]:
    """The lines of an export without the names that were added to them."""
    lines = map(json.loads, text.splitlines())
    return [{name: value for name, value in line.items() if name not in ("run_id", "model")} for line in lines]


def _steady(body: Any) -> Any:
    """Without what differs between two requests; costs are all the same here, and their order is not fixed."""
    if isinstance(body, dict):
        kept = {name: value for name, value in body.items() if name not in ("request_id", "archive")}
        if kept.get("metric") == "pass_rate":  # scores that are no share of passes came later
            del kept["metric"]
        if "cron_expression" in kept:  # schedules of harnesses came later; the old ones have none
            assert kept.pop("harness", None) is None
        return {name: _steady(value) for name, value in kept.items()}
    if isinstance(body, list):
        return sorted(map(_steady, body), key=lambda entry: str(entry.get("key", "")) if isinstance(entry, dict) else "")
    return body


def _without_later_names(new: Any, old: Any) -> Any:
    """Without the names that came later. They say nothing of what was there before them, so they must be empty."""
    if isinstance(new, dict) and isinstance(old, dict):
        later = {name for name, value in new.items() if name not in old and not value}
        return {name: _without_later_names(value, old.get(name)) for name, value in new.items() if name not in later}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_without_later_names(*pair) for pair in zip(new, old, strict=True)]
    return new


async def test_archives_replay_to_the_same_digest(upgraded: Service) -> None:
    for run_id, old in OLD["archives"].items():
        answer = await upgraded.client.get(f"/api/container-runs/{run_id}/archive")
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
            new = {name: json.load(tar.extractfile(name) or io.BytesIO()) for name in ("manifest.json", "run.json")}
        assert new["manifest.json"]["grading_digest"] == old["manifest.json"]["grading_digest"]
        assert new["manifest.json"]["model"] == old["manifest.json"]["model"]
        assert new["run.json"]["plan"] == old["run.json"]["plan"]
        described = _without_later_names(new["run.json"], old["run.json"])
        assert described["run"] == {**old["run.json"]["run"], "model_id": described["run"]["model_id"]}
        if old["manifest.json"]["model"] != STORED_ANSWERS:
            assert described == old["run.json"]


async def test_what_waits_is_carried_out(upgraded: Service) -> None:
    claimed: dict[str, dict[str, Any]] = {}

    async def any_runner(container: FakeContainer) -> int:
        run_id = container.labels["benchyard.run"]
        kind = (await upgraded.run(run_id))["kind"]
        if kind == "command":
            return await stopwatch(container)
        if kind.startswith("eval"):
            evals = EvalRunner()
            code = await evals(container)
            claimed[run_id] = evals.spec
            return code
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            assert (await runner.claim()).status_code == 200
            claimed[run_id] = runner.spec
            for item in runner.open_items():
                await runner.send(runner.next("progress", item={**item, "outcome": "passed"}))
            await runner.send(runner.next("complete", items=len(runner.open_items())))
            return 0
        finally:
            await runner.close()

    upgraded.engine.behaviour = any_runner
    upgraded.engine.faults.unreachable = False
    upgraded.clock.advance(5)
    upgraded.services.signals.look()
    ends = {name: await upgraded.until(run_id, "completed", "failed", timeout_s=60) for name, run_id in PENDING.items()}
    statuses = {name: run["status"] for name, run in ends.items()}
    assert statuses == {name: "failed" if name == "retry" else "completed" for name in PENDING}, statuses
    assert claimed[PENDING["benchmark"]]["model"]["slug"] == "demo-strong"
    assert claimed[PENDING["grade"]]["model"]["slug"] == STORED_ANSWERS
    assert claimed[PENDING["eval_draft"]]["eval"]["draft"].endswith("# again\n")
    for row in (await upgraded.client.get(f"/api/batches/{NAMED['batch']}")).json()["instance_types"]:
        for member in row["members"]:
            await upgraded.until(member["run_id"], "completed")


async def test_keys_that_were_used_give_the_answer_they_gave(upgraded: Service) -> None:
    async def again(key: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = await upgraded.client.post(path, json=body, headers={"idempotency-key": key})
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    runs = "/api/container-runs"
    assert (await again("bench-key", runs, OLD["requests"]["bench"]))["run_id"] == NAMED["bench"]
    assert (await again("command-key", runs, OLD["requests"]["command"]))["run_id"] == NAMED["command"]
    assert (await again("retry-key", f"{runs}/{NAMED['broken']}/retry"))["run_id"] == PENDING["retry"]
    assert (await again("schedule-key", "/api/schedules/demo-strong/run"))["run_id"] == PENDING["schedule"]
    batch = {"models": ["demo-strong"], "sample_size": 1, "instance_types": ["one", "two"]}
    assert (await again("batch-key", "/api/batches", batch))["batch_id"] == NAMED["batch"]
    generation = {"model_id": "demo-strong", "name": "second"}
    made = await again("generate-key", f"/api/eval-sets/{NAMED['set']}/generate", generation)
    assert made["job_id"] == PENDING["eval_generate"]
    other = await upgraded.client.post(
        runs, json={**OLD["requests"]["bench"], "seed": 5}, headers={"idempotency-key": "bench-key"}
    )
    assert other.status_code == 409


def test_the_upgrade_can_be_undone(empty_database_url: str) -> None:
    make_old_database(empty_database_url)
    engine = sa.create_engine(empty_database_url, poolclass=NullPool)
    before = _plans(engine)
    migrate(empty_database_url)
    check(empty_database_url)
    command.downgrade(alembic_config(empty_database_url), "0026")
    assert _plans(engine) == before
    migrate(empty_database_url)
    check(empty_database_url)
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            assert connection.execute(sa.text("PRAGMA foreign_key_check")).all() == []


def _plans(engine: sa.Engine) -> list[tuple[Any, ...]]:
    from orchestrator.system.zstd import decompress

    query = (
        "SELECT r.id, r.kind, m.slug, r.plan, j.payload FROM container_runs r JOIN models m ON m.id = r.model_id "
        "LEFT JOIN eval_jobs j ON j.run_id = r.id ORDER BY r.id"
    )
    with engine.connect() as connection:
        rows = connection.execute(sa.text(query)).all()
    return [
        (run_id, kind, slug, json.loads(decompress(bytes(plan))), payload and json.loads(decompress(bytes(payload))))
        for run_id, kind, slug, plan, payload in rows
    ]
