"""The limiter against a provider with a rate, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from desk_world import ScriptedUpstream, claude_run, make_call, make_desk
from virtual_time import LoopClock, run_virtually

from orchestrator.gateway.calls import Call
from orchestrator.gateway.errors import GatewayError, UpstreamError
from orchestrator.gateway.limiter import Limiter, PausedTooLong


class Bucket:
    """A provider's rate: so many per second, saved up for a burst."""

    def __init__(self, per_second: float, burst: float, *, tells: bool) -> None:
        self.per_second, self.burst, self.tells = per_second, burst, tells
        self.level, self.at = burst, 0.0
        self.taken: list[float] = []
        self.refused = 0

    def act(self, call: Call) -> UpstreamError | None:
        now = asyncio.get_running_loop().time()
        self.level = min(self.level + (now - self.at) * self.per_second, self.burst)
        self.at = now
        if self.level >= 1:
            self.level -= 1
            self.taken.append(now)
            return None
        self.refused += 1
        wait_s = (1 - self.level) / self.per_second if self.tells else None
        return UpstreamError(429, "slow down", retry=True, crowded=True, retry_after_s=wait_s)


@pytest.mark.parametrize("tells", [True, False], ids=["with Retry-After", "without"])
@pytest.mark.parametrize(("rate", "latency_s"), [(5.0, 2.0), (5.0, 28.0)])
def test_a_storm_settles_at_the_providers_rate_and_starves_nobody(rate: float, latency_s: float, tells: bool) -> None:
    bucket = Bucket(rate, burst=rate, tells=tells)
    upstream = ScriptedUpstream(act=bucket.act, latency_s=lambda: latency_s)
    done: Counter[str] = Counter()
    end = 240.0

    async def storm() -> None:
        desk = make_desk(upstream)
        loop = asyncio.get_running_loop()

        async def worker(run: str, number: int) -> None:
            turn = 0
            while loop.time() < end:
                turn += 1
                try:
                    await desk.answer(make_call(claude_run(run), f"b/{number}/0/{turn}"))
                except GatewayError:
                    continue
                done[run] += 1

        workers = [asyncio.create_task(worker(f"run-{run}", number)) for run in range(20) for number in range(8)]
        await asyncio.sleep(end)
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await desk.close(0)

    run_virtually(storm())
    settled = [moment for moment in bucket.taken if 90 <= moment < end]
    assert len(settled) >= 0.9 * rate * (end - 90)
    assert len(done) == 20
    assert min(done.values()) >= 0.7 * sum(done.values()) / 20


def limiter(**options: float) -> Limiter:
    return Limiter(clock=LoopClock(), sleep=asyncio.sleep, **options)


def test_it_grows_while_all_is_well() -> None:
    async def story() -> None:
        gate = limiter(initial=8)
        for _ in range(3):
            for slot in [await gate.acquire("r") for _ in range(int(gate.limit))]:
                gate.release_well(slot)
        assert gate.limit == 11
        assert gate.pace is None

    run_virtually(story())


def test_it_halves_once_however_many_are_refused_together() -> None:
    async def story() -> None:
        gate = limiter(initial=8)
        slots = [await gate.acquire("r") for _ in range(8)]
        await asyncio.sleep(1)
        for slot in slots:
            gate.release_crowded(slot, None, "429")
        assert gate.limit == 4
        for _ in range(100):
            gate.release_crowded(await gate.acquire("r"), None, "429")
            await asyncio.sleep(1)
        assert gate.limit == 1

    run_virtually(story())


def test_it_keeps_room_for_what_the_provider_has_taken() -> None:
    async def story() -> None:
        gate = limiter(initial=8)
        slots = [await gate.acquire("r") for _ in range(8)]
        for slot in slots[:7]:
            gate.received(slot)
        await asyncio.sleep(1)
        gate.release_crowded(slots[7], None, "429")
        assert gate.limit == 8
        assert gate.pace == pytest.approx(7)
        for slot in slots[:7]:
            gate.release_well(slot)
        assert (gate.in_flight, gate.queued) == (0, 0)

    run_virtually(story())


def test_what_a_pause_held_back_is_made_up_for() -> None:
    async def story() -> list[float]:
        gate, sent = limiter(initial=100), []
        loop = asyncio.get_running_loop()
        first = await gate.acquire("r")
        gate.received(first)
        gate.release_crowded(await gate.acquire("r"), None, "429")  # from here on one call a second
        gate.release_well(first, pause_s=30.0, reason="its rate limit is used up")
        for _ in range(20):
            gate.release(await gate.acquire("r"))
            sent.append(loop.time())
        return sent

    sent = run_virtually(story())
    assert sent[0] >= 30
    assert sent[-1] < 31


def test_who_was_refused_is_next() -> None:
    async def story() -> None:
        gate = limiter(initial=1)
        first = await gate.acquire("x")
        order: list[str] = []

        async def wait(run: str, *, again: bool = False) -> None:
            slot = await gate.acquire(run, again=again)
            order.append(run)
            gate.limit = 1
            gate.release(slot)

        tasks = [asyncio.create_task(wait(run)) for run in "abc"]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(wait("d", again=True)))
        await asyncio.sleep(0)
        gate.release(first)
        await asyncio.gather(*tasks)
        assert "".join(order) == "dabc"

    run_virtually(story())


def test_a_pause_holds_back_everybody_until_it_is_over() -> None:
    async def story() -> None:
        gate = limiter()
        gate.release_crowded(await gate.acquire("a"), 12.0, "429")
        waits = [asyncio.create_task(gate.acquire(run)) for run in "abc"]
        await asyncio.sleep(11.9)
        assert not any(task.done() for task in waits)
        assert gate.queued == 3
        await asyncio.sleep(0.2)
        assert all(task.done() for task in waits)

    run_virtually(story())


def test_runs_take_turns() -> None:
    async def story() -> None:
        gate = limiter(initial=1)
        first = await gate.acquire("x")
        order: list[str] = []

        async def wait(run: str) -> None:
            slot = await gate.acquire(run)
            order.append(run)
            gate.limit = 1
            gate.release(slot)

        tasks = [asyncio.create_task(wait(run)) for run in "aaaabc"]
        await asyncio.sleep(0)
        gate.release(first)
        await asyncio.gather(*tasks)
        assert "".join(order) == "abcaaa"

    run_virtually(story())


def test_who_gives_up_waiting_takes_no_slot_with_it() -> None:
    async def story() -> None:
        gate = limiter(initial=1)
        slot = await gate.acquire("a")
        waiting = [asyncio.create_task(gate.acquire("a")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        gate.release(slot)
        waiting[1].cancel()  # it was just given the slot
        await asyncio.gather(*waiting[:2], return_exceptions=True)
        gate.release(await waiting[2])
        assert (gate.in_flight, gate.queued) == (0, 0)

    run_virtually(story())


def test_a_pause_that_no_call_can_wait_for_is_said_at_once() -> None:
    async def story() -> None:
        gate = limiter(too_long_s=100, initial=1)
        slot = await gate.acquire("a")
        waiting = asyncio.create_task(gate.acquire("b"))
        await asyncio.sleep(0)
        gate.release_crowded(slot, 86400.0, "429")
        for refused in (waiting, gate.acquire("c")):
            with pytest.raises(PausedTooLong):
                await refused
        await asyncio.sleep(3601)
        gate.release(await gate.acquire("d"))

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
        limiter.release_unused(first)
        assert limiter.try_acquire("d") is None
        limiter.release_well(second, pause_s=5.0, reason="x")
        limiter.release(await waiting)
        assert limiter.in_flight == 0
        assert limiter.try_acquire("d") is None
        await asyncio.sleep(5)
        assert limiter.try_acquire("d") is not None

    run_virtually(take())
