"""A run whose runner and orchestrator are killed at random moments, and what it cost at a provider that counts."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import MetaData, create_engine, select

from orchestrator.db.session import database_url as full_url
from orchestrator.gateway.calls import request_hash
from tests.faults.counting_provider import CountingProvider
from tests.faults.invariants import all_hold
from tests.faults.service import Service, docker, wait_for

MODEL = {"slug": "counting-priced", "provider": "openai", "name": "counting", "input_price": 1.0, "output_price": 2.0}


@dataclass(frozen=True)
class Bought:
    """What a run bought. `lost` sends were under way when the orchestrator was killed; some never reached the provider."""

    run: dict[str, Any]
    keys: int
    calls: int
    lost: int


def tables(service: Service, database_url: str | None) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    engine = create_engine(full_url(database_url, service.data))
    try:
        schema = MetaData()
        schema.reflect(engine)
        with engine.connect() as connection:
            return {
                name: [dict(row) for row in connection.execute(select(table)).mappings()]
                for name, table in schema.tables.items()
            }
    finally:
        engine.dispose()


def add_model(service: Service) -> None:
    answer = service.client.post("/api/models", json=MODEL)
    assert answer.status_code == 201, answer.text


def kill_a_lot(
    service: Service,
    provider: CountingProvider,
    database_url: str | None,
    rng: random.Random,
    *,
    problems: int,
    samples: int,
    concurrency: int,
    runner_kills: int,
    orchestrator_kills: int,
) -> Bought:
    """Carry out a run under kills. Fails unless it completes and every answer was bought once: calls at the provider =
    distinct call keys, but for what was under way when the orchestrator was killed.

    The provider stops at the moment of each fault until it has happened, so that a slow test does not come too late. It
    may give as many answers more as killed orchestrators can have lost.
    """
    add_model(service)
    items = problems * samples
    spare = concurrency * orchestrator_kills
    assert items - spare - concurrency > runner_kills + orchestrator_kills + 2, "the run is too short for its faults"
    provider.allow(0)
    shape = {"samples_per_problem": samples, "concurrency": concurrency}
    run_id = service.submit(MODEL["slug"], sample_size=problems, **shape)  # type: ignore[arg-type]
    faults = ["runner"] * runner_kills + ["orchestrator"] * orchestrator_kills
    rng.shuffle(faults)
    moments = sorted(rng.sample(range(2, items - spare - concurrency), len(faults)))
    for done, fault in zip(moments, faults, strict=True):
        provider.allow(done + spare)
        service.wait_items(run_id, done)
        time.sleep(rng.uniform(0, 0.5))
        if fault == "runner":
            before = service.run(run_id)["attempt"]
            docker("kill", service.container(run_id))
            wait_for(lambda: service.run(run_id)["attempt"] > before, 180, "the next attempt")  # noqa: B023
        else:
            service.kill()
            time.sleep(rng.uniform(0, 2))
            service.start()
    provider.allow()
    run = service.wait_status(run_id, "completed")
    all_hold(service, run)
    return counted(run, provider, tables(service, database_url), items, lost_at_most=concurrency * orchestrator_kills)


def counted(
    run: dict[str, Any],
    provider: CountingProvider,
    book: dict[str, list[dict[str, Any]]],
    items: int,
    *,
    lost_at_most: int,
) -> Bought:
    asked = Counter(request_hash("openai", "/v1/chat/completions", question, {}) for question in provider.questions())
    keys = Counter(call["request_hash"] for call in book["gateway_calls"])
    hash_of = {call["call_key"]: call["request_hash"] for call in book["gateway_calls"]}
    lost = Counter(hash_of[send["call_key"]] for send in book["gateway_lost_sends"])
    assert keys.total() == items
    assert {call["state"] for call in book["gateway_calls"]} == {"settled"}
    assert not book["gateway_flights"]
    for question, count in asked.items():
        assert keys[question] <= count <= keys[question] + lost[question]
    assert keys.keys() == asked.keys()
    assert lost.total() <= lost_at_most
    assert abs(run["cost_usd"] - items * (100 * 1.0 + 20 * 2.0) / 1e6) < 1e-9
    return Bought(run, keys.total(), asked.total(), lost.total())
