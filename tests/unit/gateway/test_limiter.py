"""The limiter against providers with all kinds of limits, in virtual time. `tests.bench.limits` has many more."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.gateway.pacing.limiter import Limiter, PausedTooLong, Permit
from tests.unit.gateway.provider_storms import (
    AtOnce,
    Bucket,
    Sliding,
    Storm,
    Windows,
    always,
    exact,
    watch,
    whole_seconds,
)
from tests.unit.gateway.virtual_time import LoopClock, run_virtually

STORMS = {
    "silent": Storm(lambda: Bucket(5.0, 1.0), (2.0, 3.0), 5.0),
    "with the time": Storm(lambda: Bucket(5.0, 1.0), (28.0, 32.0), 5.0, exact),
    "always ten seconds": Storm(lambda: Bucket(1.0, 1.0), (2.0, 3.0), 1.0, always(10.0)),
    "always ten seconds, a minute saved up": Storm(lambda: Bucket(5.0, 60.0), (60.0, 120.0), 5.0, always(10.0)),
    "windows": Storm(lambda: Windows(1.0, 60.0), (60.0, 120.0), 1.0),
    "sliding window with headers": Storm(lambda: Sliding(5.0, 60.0), (2.0, 3.0), 5.0, whole_seconds, headers=True),
    "so many at once": Storm(lambda: AtOnce(10), (2.0, 3.0), 4.0),
    "so many at once, with a pause": Storm(lambda: AtOnce(60), (28.0, 32.0), 2.0, always(1.0)),
    "silent until the answer": Storm(lambda: Bucket(1.0, 1.0), (2.0, 3.0), 1.0, whole_seconds, tells_at_once=False),
    "two orchestrators": Storm(lambda: Bucket(5.0, 1.0), (2.0, 3.0), 5.0, orchestrators=2),
    "tokens": Storm(lambda: Bucket(5000.0, 60.0), (28.0, 32.0), 5.0, whole_seconds, sizes=(200.0, 1800.0)),
}


@pytest.mark.parametrize("name", STORMS)
def test_a_storm_settles_at_the_providers_rate_and_starves_nobody(name: str) -> None:
    storm, since, until = STORMS[name], 150.0, 600.0
    seen = watch(storm, until, since)
    assert seen.rate(since, until) >= 0.9 * storm.fair_rate
    assert seen.early == 0, "a call was made before the time that the provider had said"
    assert seen.failed == 0
    assert seen.least(storm.runs) >= 0.7


def limiter(**options: float) -> Limiter:
    return Limiter(clock=LoopClock(), sleep=asyncio.sleep, **options)


def answered(permit: Permit) -> None:
    permit.accepted()
    permit.release()


def test_it_grows_while_all_is_well() -> None:
    async def story() -> None:
        gate = limiter(initial=8)
        for _ in range(3):
            for permit in [await gate.acquire("r") for _ in range(int(gate.limit))]:
                answered(permit)
        assert gate.limit == 11
        assert gate.per_s is None

    run_virtually(story())


def test_it_halves_once_however_many_are_refused_together_and_then_asks_one_at_a_time() -> None:
    async def story() -> None:
        gate = limiter(initial=8)
        permits = [await gate.acquire("r") for _ in range(8)]
        await asyncio.sleep(1)
        for permit in permits:
            permit.refused(None, "429")
        assert gate.limit == 4
        waiting = [asyncio.create_task(gate.acquire("r")) for _ in range(3)]
        await asyncio.sleep(3)
        assert [task.done() for task in waiting] == [True, False, False]
        waiting[0].result().accepted()
        await asyncio.sleep(120)
        assert all(task.done() for task in waiting)
        await gate.close()

    run_virtually(story())


def test_it_keeps_room_for_what_the_provider_has_taken() -> None:
    async def story() -> None:
        gate = limiter(initial=8)
        permits = [await gate.acquire("r") for _ in range(8)]
        for permit in permits[:7]:
            permit.accepted()
        await asyncio.sleep(1)
        permits[7].refused(None, "429")
        assert gate.limit == 8
        assert gate.per_s == pytest.approx(7)
        for permit in permits[:7]:
            answered(permit)
        assert (gate.at_provider, gate.queued) == (0, 0)

    run_virtually(story())


def test_who_was_refused_is_next() -> None:
    async def story() -> None:
        gate = limiter(initial=1)
        first = await gate.acquire("x")
        order: list[str] = []

        async def wait(run: str, *, again: bool = False) -> None:
            permit = await gate.acquire(run, again=again)
            order.append(run)
            permit.release()

        tasks = [asyncio.create_task(wait(run)) for run in "abc"]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(wait("d", again=True)))
        await asyncio.sleep(0)
        first.release()
        await asyncio.gather(*tasks)
        assert "".join(order) == "dabc"

    run_virtually(story())


def test_a_pause_holds_back_everybody_and_then_one_asks() -> None:
    async def story() -> None:
        gate = limiter()
        (await gate.acquire("a")).refused(12.0, "429")
        waits = [asyncio.create_task(gate.acquire(run)) for run in "abc"]
        await asyncio.sleep(11.9)
        assert not any(task.done() for task in waits)
        assert gate.queued == 3
        await asyncio.sleep(0.2)
        assert [task.done() for task in waits] == [True, False, False]
        waits[0].result().accepted()
        await asyncio.sleep(60)
        assert all(task.done() for task in waits)
        await gate.close()

    run_virtually(story())


def test_runs_take_turns() -> None:
    async def story() -> None:
        gate = limiter(initial=1)
        first = await gate.acquire("x")
        order: list[str] = []

        async def wait(run: str) -> None:
            permit = await gate.acquire(run)
            order.append(run)
            permit.release()

        tasks = [asyncio.create_task(wait(run)) for run in "aaaabc"]
        await asyncio.sleep(0)
        first.release()
        await asyncio.gather(*tasks)
        assert "".join(order) == "abcaaa"

    run_virtually(story())


def test_who_gives_up_waiting_takes_no_permit_with_it() -> None:
    async def story() -> None:
        gate = limiter(initial=1)
        permit = await gate.acquire("a")
        waiting = [asyncio.create_task(gate.acquire("a")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        permit.release()
        waiting[1].cancel()  # it was just given the permit
        await asyncio.gather(*waiting[:2], return_exceptions=True)
        (await waiting[2]).release()
        assert (gate.at_provider, gate.queued) == (0, 0)

    run_virtually(story())


def test_a_pause_that_no_call_can_wait_for_is_said_at_once() -> None:
    async def story() -> None:
        gate = limiter(too_long_s=100, initial=1)
        permit = await gate.acquire("a")
        waiting = asyncio.create_task(gate.acquire("b"))
        await asyncio.sleep(0)
        permit.refused(86400.0, "429")
        for refused in (waiting, gate.acquire("c")):
            with pytest.raises(PausedTooLong):
                await refused
        await asyncio.sleep(3601)
        (await gate.acquire("d")).release()

    run_virtually(story())


def test_a_place_is_for_the_taking_only_when_nobody_waits_and_nothing_holds_back() -> None:
    async def take() -> None:
        limiter = Limiter(clock=LoopClock(), sleep=asyncio.sleep, initial=2)
        first, second = limiter.try_acquire("a"), limiter.try_acquire("b")
        assert first is not None
        assert second is not None
        assert limiter.try_acquire("c") is None
        waiting = asyncio.create_task(limiter.acquire("c"))
        await asyncio.sleep(0)
        first.release(unused=True)
        assert limiter.try_acquire("d") is None
        await asyncio.sleep(0)
        waiting.result().release()
        second.accepted(5.0)
        answered(second)
        assert limiter.at_provider == 0
        assert limiter.try_acquire("d") is None
        await asyncio.sleep(5)
        assert limiter.try_acquire("d") is not None

    run_virtually(take())
