"""Judging ended runs: verdicts in the order of the looks, alerts once, and trouble that never counts as drift."""

from __future__ import annotations

from typing import Any

import pytest
from sqlmodel import Session, col, select

from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.tables import ContainerRun, ItemRow
from orchestrator.schedules.drift.judge import Judge
from orchestrator.schedules.tables import Schedule, ScheduleFire, SchedulePanel
from tests.rows import a_benchmark_task, an_item
from tests.service.schedules.simulated_schedules import ScheduleWorld

pytestmark = pytest.mark.anyio

PROBLEMS = [f"p{number}" for number in range(40)]
SPEC = {"name": "nowhere", "adapter": "livecodebench", "pack_digest": "d", "problem_ids": PROBLEMS}


class Series:
    """A schedule that fires once a minute and whose runs end as the test says."""

    def __init__(self, world: ScheduleWorld, model_id: int, leadership: Leadership, firing: Any) -> None:
        self.world, self.model_id, self.firing = world, model_id, firing
        self.judge = Judge(world.db, leadership, world.clock)

    async def run(
        self, passing: int, *, trouble: int = 0, judge: bool = True, prompts: str = "", **changed: Any
    ) -> ScheduleFire:
        self.world.clock.advance(60)
        await self.firing.round()

        def end(session: Session) -> None:
            run = session.exec(select(ContainerRun).order_by(col(ContainerRun.id).desc()).limit(1)).one()
            values = {"status": "completed", "score": {"comparable": trouble <= 0.02 * len(PROBLEMS)}, **changed}
            for name, value in values.items():
                setattr(run, name, value)
            session.add(run)
            for position, problem_id in enumerate(PROBLEMS):
                outcome = "infra_error" if position < trouble else "passed" if position < passing else "wrong_answer"
                values = {"position": position, "outcome": outcome, "data": {"prompt_version": prompts}}
                session.add(an_item(run.id, problem_id, benchmark="nowhere", **values))

        await self.world.db.write(end)
        if judge:
            while await self.judge.round():
                pass
        return (await self.world.fires(self.model_id))[-1]

    async def kinds(self) -> list[str]:
        return [alert.kind for alert in await self.world.alerts()]


async def a_series(world: ScheduleWorld, **changed: Any) -> Series:
    model_id = await world.add(**changed)

    def enlarge(session: Session) -> None:
        panel = session.get(SchedulePanel, (1, model_id, 1))
        assert panel is not None
        panel.benchmarks, panel.problems = [SPEC], len(PROBLEMS)
        session.add(panel)

    await world.db.write(enlarge)
    return Series(world, model_id, *await world.boot())


async def test_a_drop_is_told_once(world: ScheduleWorld) -> None:
    series = await a_series(world)
    first = await series.run(30)
    assert (first.verdict, first.look) == ("not_comparable", 1)
    for look in (2, 3, 4):
        fire = await series.run(30)
        assert (fire.verdict, fire.look) == ("no_change", look)
    worse = await series.run(5)
    assert worse.verdict == "worse"
    assert worse.comparison is not None
    assert worse.comparison["effect"] == pytest.approx(-25 / 40)
    assert len(worse.comparison["flipped"]) == 25
    assert (await series.run(5)).verdict == "worse"
    (alert,) = await world.alerts()
    assert (alert.kind, alert.run_id, alert.data["verdict"]) == ("drift.worse", worse.run_id, "worse")
    assert alert.title.startswith("m1: Worse than the baseline: -62.5 points")


async def test_trouble_never_counts_as_drift(world: ScheduleWorld) -> None:
    series = await a_series(world)
    for _ in range(4):
        await series.run(30)
    fire = await series.run(30, trouble=25)
    assert (fire.verdict, fire.look) == ("not_comparable", None)
    assert fire.comparison is not None
    assert "errors" in fire.comparison["sentence"]
    assert (await series.run(30)).look == 5, "it is no look, and not in the pool"
    assert await series.kinds() == []


async def test_a_failed_run_is_told(world: ScheduleWorld) -> None:
    series = await a_series(world)
    await series.run(30)
    fire = await series.run(0, status="failed", reason="out_of_memory")
    assert fire.verdict == "not_comparable"
    (alert,) = await world.alerts()
    assert alert.kind == "run.failed"
    assert "more memory" in alert.title
    await series.run(0, status="cancelled", reason="cancelled_by_user")
    assert await series.kinds() == ["run.failed"], "somebody who cancels knows it"


async def test_a_run_in_which_nothing_was_measured_is_told_with_the_providers_sentence(world: ScheduleWorld) -> None:
    series = await a_series(world)
    said = "nothing was measured (20 provider_error): lab answered 400: Invalid model name passed in model=x"
    await series.run(0, trouble=40, status="failed", reason="provider_error", error_message=said, score={"n": 0})
    (alert,) = await world.alerts()
    assert (alert.kind, alert.data["measured"]) == ("run.failed", False)
    assert alert.title == f"m1: the scheduled run ended failed. N{said[1:]}"
    await series.run(0, status="failed", reason="image_missing", error_message=None, score=None)
    assert "ended failed. Nothing was measured. The image is not on the engine" in (await world.alerts())[-1].title


async def test_another_pack_is_not_compared(world: ScheduleWorld) -> None:
    series = await a_series(world)
    await series.run(30)
    fire = await series.run(5, task=a_benchmark_task(**{**SPEC, "pack_digest": "other"}))
    assert fire.verdict == "not_comparable"
    assert fire.comparison is not None
    assert "dataset has changed" in fire.comparison["sentence"]


async def test_another_version_of_the_prompts_is_not_compared(world: ScheduleWorld) -> None:
    series = await a_series(world)
    await series.run(30, prompts="nowhere-1")
    fire = await series.run(5, prompts="nowhere-2")
    assert (fire.verdict, fire.look) == ("not_comparable", None)
    assert fire.comparison is not None
    assert "prompts of nowhere have changed (nowhere-1 before, nowhere-2 now)" in fire.comparison["sentence"]
    assert (await series.run(30, prompts="nowhere-1")).verdict == "no_change"
    assert await series.kinds() == []


async def test_a_run_on_other_problems_is_not_compared(world: ScheduleWorld) -> None:
    series = await a_series(world)
    await series.run(30)
    fire = await series.run(5, task=a_benchmark_task(**{**SPEC, "problem_ids": PROBLEMS[:3]}))
    assert (fire.verdict, fire.look) == ("not_comparable", None)
    assert fire.comparison is not None
    assert "not on the problems of the panel" in fire.comparison["sentence"]


async def test_a_chosen_run_that_has_less_is_no_measure(world: ScheduleWorld) -> None:
    series = await a_series(world)
    small = await series.run(36, task=a_benchmark_task(**{**SPEC, "problem_ids": PROBLEMS[:10]}))

    def choose(session: Session) -> None:
        schedule = session.get(Schedule, (1, series.model_id))
        assert schedule is not None
        schedule.baseline, schedule.baseline_run_id = "run", small.run_id
        session.add(schedule)
        for item in session.exec(select(ItemRow).where(ItemRow.run_id == small.run_id, col(ItemRow.position) >= 10)).all():
            session.delete(item)

    await world.db.write(choose)
    fire = await series.run(5)
    assert fire.verdict == "not_comparable"
    assert fire.comparison is not None
    assert "The baseline run has no result on 30 of the panel's 40 problems" in fire.comparison["sentence"]


async def test_a_chosen_run_stays_the_measure(world: ScheduleWorld) -> None:
    """A slow decline that no two neighbours show is seen against a chosen run."""
    series = await a_series(world)
    await series.run(20)
    first = await series.run(36)

    def choose(session: Session) -> None:
        schedule = session.get(Schedule, (1, series.model_id))
        assert schedule is not None
        schedule.baseline, schedule.baseline_run_id = "run", first.run_id
        session.add(schedule)

    await world.db.write(choose)
    for passing in (34, 32, 30, 28, 26, 24, 22, 20):
        fire = await series.run(passing)
    assert fire.comparison is not None
    assert (fire.verdict, fire.comparison["reference_runs"]) == ("worse", 1)
    assert fire.comparison["window"] <= 8, "neither the chosen run nor what was before it counts as later"


async def test_a_new_panel_starts_a_new_series(world: ScheduleWorld) -> None:
    series = await a_series(world)
    for _ in range(3):
        await series.run(30)

    def redraw(session: Session) -> None:
        schedule = session.get(Schedule, (1, series.model_id))
        panel = session.get(SchedulePanel, (1, series.model_id, 1))
        assert schedule is not None
        assert panel is not None
        schedule.panel_version = 2
        session.add(schedule)
        session.add(SchedulePanel(**{**panel.model_dump(), "version": 2}))

    await world.db.write(redraw)
    fire = await series.run(2)
    assert (fire.verdict, fire.look, fire.panel_version) == ("not_comparable", 1, 2)


async def test_verdicts_are_written_once(world: ScheduleWorld) -> None:
    series = await a_series(world)
    for _ in range(4):
        await series.run(30, judge=False)
    while await series.judge.round():
        pass
    assert [fire.look for fire in await world.fires()] == [1, 2, 3, 4]
    before = [(fire.verdict, fire.judged_at) for fire in await world.fires()]
    world.clock.advance(5)
    await series.judge.round()
    assert [(fire.verdict, fire.judged_at) for fire in await world.fires()] == before
