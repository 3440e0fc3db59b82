"""Metrics of runs over HTTP, on both databases: each run counted once, labels bounded, workspaces apart."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from sqlmodel import Session

from orchestrator.evals.tables import Eval, EvalSet
from orchestrator.metrics.run_metrics import BoundedLabels, RunMetrics
from tests.manual_clock import START
from tests.rows import a_model, a_run, an_attempt, an_item

if TYPE_CHECKING:
    from orchestrator.settings import Settings
    from tests.served import Service

DOCS = Path(__file__).parents[3] / "docs"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
async def service(
    new_settings: Callable[..., Settings], migrated_database_url: str, dialect: str, anyio_backend: str
) -> AsyncIterator[Service]:
    from tests.served import served

    where = {"database_url": migrated_database_url} if dialect == "postgresql" else {}
    async with served(new_settings(**where)) as it:
        yield it
        await it.engine.end_all()


async def scraped(service: Service) -> Samples:
    answer = await service.stranger.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


@pytest.mark.anyio
async def test_runs_are_counted_once_by_model_and_benchmark(service: Service) -> None:
    assert value(await scraped(service), "benchyard_queue_length", state="waiting") == 0
    run_id = await service.new_run(sample_size=4)
    await service.until(run_id, "completed")
    waiting = await service.new_run(provider="nowhere")
    which = {"model": "demo-strong", "benchmark": "sample"}
    for _ in range(2):
        found = await scraped(service)
        ended = {"kind": "benchmark", "status": "completed", "reason": ""}
        assert value(found, "benchyard_runs_ended_total", **ended) == 1
        assert value(found, "benchyard_items_total", **which, outcome="passed") == 2
        assert value(found, "benchyard_items_total", **which, outcome="wrong_answer") == 2
        assert value(found, "benchyard_score", **which) == 0.5
        assert value(found, "benchyard_run_duration_seconds_count", kind="benchmark", status="completed") == 1
        assert value(found, "benchyard_run_queue_seconds_count", kind="benchmark") == 1
        assert value(found, "benchyard_attempt_start_seconds_count", warm="false") == 1
        assert value(found, "benchyard_cost_usd_total", **which) == 0
        assert value(found, "benchyard_queue_length", state="waiting") == 1
    assert (await service.client.post(f"/api/container-runs/{waiting}/cancel")).status_code == 202
    found = await scraped(service)
    gone = {"kind": "benchmark", "status": "cancelled", "reason": "cancelled_by_user"}
    assert value(found, "benchyard_runs_ended_total", **gone) == 1
    again = (await service.client.post(f"/api/container-runs/{waiting}/retry")).json()
    await service.client.post(f"/api/container-runs/{again['run_id']}/cancel")
    assert value(await scraped(service), "benchyard_runs_ended_total", **gone) == 2


@pytest.mark.anyio
async def test_tokens_cost_errors_and_what_was_there_before(service: Service) -> None:
    """Of rows: a run that ended before the start is not counted, but its score is shown; a long one is found again."""
    db, clock = service.services.db, service.clock
    score = {"estimate": 0.25, "n": 4, "comparable": True}
    metrics = RunMetrics(db, clock)

    def before(session: Session) -> tuple[int, str]:
        model = a_model("lab/big")
        session.add(model)
        session.flush()
        done = {"status": "completed", "score": score, "completed_at": clock.now()}
        session.add(a_run(model.id or 0, now=START - timedelta(minutes=1), **done))
        long = a_run(model.id or 0, now=START - timedelta(hours=5), status="running", attempt=1)
        session.add(long)
        return model.id or 0, long.id

    model_id, long_id = await db.write(before)
    await metrics.begin()
    await metrics.catch_up()
    which = {"model": "lab/big", "benchmark": "sample"}
    assert metrics.registry.get_sample_value("benchyard_score", which) == 0.25
    ended = {"kind": "benchmark", "status": "failed", "reason": "provider_error"}
    assert metrics.registry.get_sample_value("benchyard_runs_ended_total", ended) is None

    def after(session: Session) -> None:
        from orchestrator.runs import queries as run_queries

        run = run_queries.get(session, long_id)
        assert run is not None
        run.status, run.reason, run.cost_usd, run.unpriced_calls = "failed", "provider_error", 1.5, 2
        run.started_at, run.completed_at = run.created_at, run.created_at + timedelta(hours=2)
        session.add(run)
        at = {"created_at": run.created_at + timedelta(minutes=1)}
        session.add(
            an_attempt(run.id, token=None, dispatched_at=run.created_at + timedelta(seconds=30), reason="provider_error")
        )
        session.add(an_item(run.id, "p0", outcome="provider_error", **at))
        session.add(an_item(run.id, "p1", position=1, input_tokens=70, output_tokens=7, **at))
        copied = {"created_at": run.created_at - timedelta(days=1)}
        session.add(an_item(run.id, "p2", position=2, input_tokens=1000, **copied))

    await db.write(after)
    for _ in range(2):
        await metrics.catch_up()
    sample = metrics.registry.get_sample_value
    assert sample("benchyard_runs_ended_total", ended) == 1
    assert sample("benchyard_tokens_total", {**which, "direction": "input"}) == 70
    assert sample("benchyard_tokens_total", {**which, "direction": "output"}) == 7
    assert sample("benchyard_cost_usd_total", which) == 1.5
    assert sample("benchyard_unpriced_calls_total", {"model": "lab/big"}) == 2
    assert sample("benchyard_provider_errors_total", {"provider": "demo", "model": "lab/big"}) == 1
    assert sample("benchyard_run_duration_seconds_sum", {"kind": "benchmark", "status": "failed"}) == 7200
    assert sample("benchyard_run_queue_seconds_sum", {"kind": "benchmark"}) == 30
    assert model_id


@pytest.mark.anyio
async def test_evals_are_measured_by_their_newest_version(service: Service) -> None:
    def make(session: Session) -> None:
        at = {"created_at": START, "updated_at": START}
        model = a_model("writer")
        session.add(model)
        session.add(EvalSet(id="set-1", name="Support", description="", **at))
        session.flush()
        run = a_run(model.id or 0, kind="eval_generate", status="completed", completed_at=START)
        session.add(run)
        session.flush()
        for version, right in ((1, 5), (2, 9)):
            shape = {"training_n": 1, "training_right": 1, "held_out_n": 10, "held_out_right": right}
            counts = {"execution_count": 20, "failure_count": 1, "contradiction_count": 3}
            session.add(
                Eval(
                    id=f"eval-{version}",
                    eval_set_id="set-1",
                    name="polite",
                    version=version,
                    code="x",
                    model_id=model.id or 0,
                    run_id=run.id,
                    tests=[],
                    rounds=[],
                    **shape,
                    **counts,
                    **at,
                )
            )

    await service.services.db.write(make)
    found = await scraped(service)
    labels = {"eval_set": "Support", "eval": "polite"}
    assert value(found, "benchyard_eval_held_out_accuracy", **labels) == 0.9
    assert value(found, "benchyard_eval_contradictions", **labels) == 3


@pytest.mark.anyio
async def test_who_sees_one_workspace_sees_no_counters_of_all(new_settings: Callable[..., Settings]) -> None:
    from tests.contract.two_workspaces import two_workspaces
    from tests.served import served

    async with served(new_settings(host="0.0.0.0")) as service:  # where metrics need a token
        world = await two_workspaces(service)
        await service.until(await service.new_run(), "completed")
        assert (await service.stranger.get("/metrics")).status_code == 401
        assert "benchyard_runs_ended_total{" in (await service.client.get("/metrics")).text
        own = (await world.callers["viewer"].get("/metrics")).text
        assert 'eval_set="canary-alpha"' in own
        assert "canary-beta" not in own
        assert "benchyard_runs_ended" not in own
        for client in world.callers.values():
            await client.aclose()
        await service.engine.end_all()


@pytest.mark.anyio
async def test_where_everybody_may_look_names_of_several_workspaces_need_an_owner(service: Service) -> None:
    assert "benchyard_runs_ended" in (await service.stranger.get("/metrics")).text
    made = await service.client.post("/api/workspaces", json={"slug": "second", "name": "Second"})
    assert made.status_code == 201
    stranger = (await service.stranger.get("/metrics")).text
    assert "benchyard_queue_length" in stranger
    assert "benchyard_runs_ended" not in stranger
    assert "benchyard_eval" not in stranger
    wrong = await service.stranger.get("/metrics", headers={"authorization": "Bearer wrong"})
    assert "benchyard_runs_ended" not in wrong.text
    assert "benchyard_runs_ended" in (await service.client.get("/metrics")).text


@pytest.mark.anyio
async def test_every_metric_is_described_and_the_rules_name_none_that_is_not_there(service: Service) -> None:
    text = (await service.stranger.get("/metrics")).text
    there = set(re.findall(r"^# TYPE (benchyard_\w+?)(?:_created)? ", text, re.MULTILINE))
    described = (DOCS / "operations.md").read_text()
    assert [name for name in sorted(there) if f"`{name}`" not in described] == []
    rules = yaml.safe_load((DOCS / "examples" / "prometheus-alerts.yml").read_text())
    used = {name for rule in rules["groups"][0]["rules"] for name in re.findall(r"benchyard_\w+", rule["expr"])}
    assert {re.sub("_bucket$", "", name) for name in used} <= there


def test_labels_are_bounded() -> None:
    labels = BoundedLabels(2)
    assert [labels.of(name) for name in ("a", "b", "c", "a", "d")] == ["a", "b", "other", "a", "other"]
    assert labels.of("b" * 500) == "other"
    assert len(BoundedLabels(1).of("x" * 500)) == 80
