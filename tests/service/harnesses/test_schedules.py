"""Schedules that run a harness, on both databases: saved, shown, fired, judged by the ids of items, refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.engines.fake.engine import FakeEngine
from tests.served import Service, served
from tests.service.harnesses.simulated_harness import HARNESS, SimulatedHarness

if TYPE_CHECKING:
    from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def harness() -> SimulatedHarness:
    return SimulatedHarness()


@pytest.fixture
async def yard(
    new_settings: Callable[..., Settings],
    migrated_database_url: str,
    dialect: str,
    harness: SimulatedHarness,
    anyio_backend: str,
) -> AsyncIterator[Service]:
    where = {"database_url": migrated_database_url} if dialect == "postgresql" else {}
    settings = new_settings(command_images=("inspect:*",), **where)
    async with served(settings, engine=FakeEngine(behaviour=harness)) as service:
        yield service
        await service.engine.end_all()


async def save(service: Service, expect: int, **changed: Any) -> dict[str, Any]:
    body = {"model_id": "demo-strong", "cron_expression": "0 6 * * *", **changed}
    answer = await service.client.post("/api/schedules", json=body)
    assert answer.status_code == expect, answer.text
    return answer.json()  # type: ignore[no-any-return]


async def verdict(service: Service, run_id: str) -> dict[str, Any]:
    """The fire of a run, once it is judged."""
    await service.until(run_id, "completed")
    async with asyncio.timeout(60):
        while True:
            fires = (await service.client.get("/api/schedules/demo-strong/fires")).json()["items"]
            fire = next(fire for fire in fires if fire["run_id"] == run_id)
            if fire["verdict"] is not None:
                return fire  # type: ignore[no-any-return]
            await asyncio.sleep(0.05)


async def run_now(service: Service) -> dict[str, Any]:
    service.clock.advance(1)
    answer = await service.client.post("/api/schedules/demo-strong/run")
    assert answer.status_code == 202, answer.text
    return await verdict(service, answer.json()["run_id"])


async def test_it_fires_a_harness_and_sees_a_drop_of_items_that_recur(yard: Service, harness: SimulatedHarness) -> None:
    made = await save(yard, 201, harness=HARNESS, budget_usd=1, cron_expression="*/10 * * * *")
    assert (made["benchmarks"], made["sample_size"], made["concurrency"]) == (["sums"], 0, 32)
    assert made["harness"]["argv"] == ["inspect", "eval", "sums.py"]
    assert made["harness"]["files"][0].keys() >= {"name", "sha256"}
    assert "content" not in made["harness"]["files"][0]
    assert made["can_see"]["drop"] is None
    assert "Not known before the first run" in made["can_see"]["sentence"]

    yard.clock.advance(600)  # it fires by itself
    async with asyncio.timeout(60):
        while not (fires := (await yard.client.get("/api/schedules/demo-strong/fires")).json()["items"]):
            await asyncio.sleep(0.05)
    first = await verdict(yard, fires[0]["run_id"])
    run = await yard.run(first["run_id"])
    assert (run["kind"], run["trigger_type"], run["image"], run["budget_usd"]) == ("harness", "schedule", "inspect:1", 1)
    assert (first["outcome"], first["look"]) == ("fired", 1)

    for look in (2, 3, 4):
        again = await run_now(yard)
        assert (again["verdict"], again["look"], again["comparison"]["problems"]) == ("no_change", look, 40)
    harness.passing = 15
    worse = await run_now(yard)
    assert worse["verdict"] == "worse", worse
    assert worse["comparison"]["effect"] == pytest.approx(-25 / 40)
    seen = (await yard.client.get("/api/schedules/demo-strong")).json()["can_see"]
    assert (seen["problems"], seen["from_history"]) == (40, True)
    alerts = (await yard.client.get("/api/alerts")).json()["items"]
    assert "drift" in alerts[0]["kind"]

    for path in ("/schedules", f"/schedules/{made['model_id']}", "/schedules/new?model=demo-strong"):
        page = await yard.client.get(path, headers={"accept": "text/html"})
        assert page.status_code == 200, path
        assert "inspect:1" in page.text or "harness" in page.text, path


async def test_ids_that_do_not_recur_are_not_compared(yard: Service, harness: SimulatedHarness) -> None:
    await save(yard, 201, harness=HARNESS)
    assert (await run_now(yard))["look"] == 1
    harness.prefix = "other"
    other = await run_now(yard)
    assert (other["verdict"], other["look"]) == ("not_comparable", None)
    assert "40 of the 40 items" in other["comparison"]["sentence"]
    assert "same id in every run" in other["comparison"]["sentence"]
    harness.prefix, harness.count = "sums", 20  # half of the items, whatever the reason
    half = await run_now(yard)
    assert half["verdict"] == "not_comparable"
    assert "20 of the 40 items" in half["comparison"]["sentence"]
    await save(yard, 200, redraw=True)
    fresh = await run_now(yard)
    assert (fresh["panel_version"], fresh["look"]) == (2, 1), "a new panel begins a new series"


async def test_another_harness_is_another_panel_and_problems_take_its_place(yard: Service) -> None:
    made = await save(yard, 201, harness=HARNESS)
    assert made["panel"]["version"] == 1
    same = await save(yard, 200, cron_expression="0 7 * * *", harness=HARNESS)
    assert same["panel"]["version"] == 1
    assert (await save(yard, 200, timezone="Europe/Berlin"))["harness"] == made["harness"]
    changed = await save(yard, 200, harness={**HARNESS, "command": ["inspect", "eval", "sums.py", "--limit", "5"]})
    assert changed["panel"]["version"] == 2
    problems = await save(yard, 200, sample_size=4)
    assert (problems["harness"], problems["benchmarks"], problems["panel"]["version"]) == (None, ["sample"], 3)
    back = await save(yard, 200, harness=HARNESS)
    assert (back["sample_size"], back["benchmarks"], back["panel"]["version"]) == (0, ["sums"], 4)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"harness": HARNESS, "sample_size": 5}, "chooses its items itself"),
        ({"harness": HARNESS, "benchmarks": ["sample"]}, "chooses its items itself"),
        ({"harness": HARNESS, "samples_per_problem": 2}, "chooses its items itself"),
        ({"harness": {**HARNESS, "image": "other:1"}}, "not allowed"),
        ({"harness": {**HARNESS, "env": {"MY_TOKEN": "x"}}}, "looks like a secret"),
        ({}, "sample_size: say how many"),
        ({"harness": HARNESS, "baseline": "run", "baseline_run_id": "no"}, "baseline_run_id"),
    ],
)
async def test_what_a_schedule_cannot_run_is_refused(yard: Service, changed: dict[str, Any], words: str) -> None:
    answer = await save(yard, 422, **changed)
    assert words in str(answer)


async def test_a_chosen_baseline_is_a_run_of_the_same_harness(yard: Service, harness: SimulatedHarness) -> None:
    body = {"kind": "harness", "model_id": "demo-strong", "harness": HARNESS}
    run_id = (await yard.client.post("/api/container-runs", json=body)).json()["run_id"]
    await yard.until(run_id, "completed")
    await save(yard, 201, harness=HARNESS, baseline="run", baseline_run_id=run_id)
    harness.passing = 5
    assert (await run_now(yard))["comparison"]["effect"] == pytest.approx(-35 / 40)
    await save(yard, 200, harness={**HARNESS, "command": ["inspect", "eval", "sums.py", "--epochs", "2"]})
    assert "of another harness" in (await run_now(yard))["comparison"]["sentence"]


async def test_the_form_keeps_the_harness(yard: Service) -> None:
    made = await save(yard, 201, harness=HARNESS)
    form = {"model": "demo-strong", "keep_harness": "1", "preset": "free", "cron": "0 9 * * *", "timezone": "UTC"}
    answer = await yard.client.post("/schedules/new", data={**form, "sample_size": "20"}, headers={"accept": "text/html"})
    assert answer.status_code == 303, answer.text
    after = (await yard.client.get("/api/schedules/demo-strong")).json()
    assert (after["cron_expression"], after["harness"]) == ("0 9 * * *", made["harness"])
