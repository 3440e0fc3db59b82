"""Who is behind a token: asked once a second, and never believed after the run has changed."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.gateway.calls import RunContext
from orchestrator.gateway.edge.router import BELIEVED_S, FRESH_S, Callers
from orchestrator.system.identifiers import token_hash
from tests.manual_clock import ManualClock
from tests.service.gateway.gateway_parts import run_context

pytestmark = pytest.mark.anyio


class Runs:
    def __init__(self) -> None:
        self.living: dict[str, RunContext] = {token_hash("t"): run_context()}
        self.asked = 0
        self.pause = asyncio.Event()
        self.pause.set()

    async def find(self, digest: str) -> RunContext | None:
        self.asked += 1
        found = self.living.get(digest)
        await self.pause.wait()
        return found


async def test_a_living_run_is_looked_up_once_a_second_and_a_stranger_every_time(clock: ManualClock) -> None:
    runs = Runs()
    callers = Callers(runs.find, clock)
    for _ in range(5):
        assert await callers.authenticate("t") == run_context()
    assert runs.asked == 1
    clock.advance(BELIEVED_S + 0.1)
    await callers.authenticate("t")
    assert runs.asked == 2
    assert [await callers.authenticate("other") for _ in range(2)] == [None, None]
    assert runs.asked == 4


async def test_a_change_of_the_run_is_seen_at_once(clock: ManualClock) -> None:
    runs = Runs()
    callers = Callers(runs.find, clock)
    await callers.authenticate("t")
    runs.living.clear()
    callers.forget("another-run")
    assert await callers.authenticate("t") is not None
    callers.forget("run-1")
    assert await callers.authenticate("t") is None


async def test_what_was_found_before_a_change_is_not_kept(clock: ManualClock) -> None:
    runs = Runs()
    callers = Callers(runs.find, clock)
    runs.pause.clear()
    asking = asyncio.create_task(callers.authenticate("t"))
    await asyncio.sleep(0)
    runs.living.clear()
    callers.forget("run-1")
    runs.pause.set()
    await asking
    assert await callers.authenticate("t") is None


async def test_who_keeps_calling_does_not_wait_and_nothing_is_believed_for_longer(clock: ManualClock) -> None:
    # Given a run that is known, and a database that takes its time
    runs = Runs()
    callers = Callers(runs.find, clock)
    await callers.authenticate("t")
    runs.pause.clear()
    # When it calls on, it is answered at once, and looked up once beside that
    clock.advance(FRESH_S)
    for _ in range(3):
        assert await callers.authenticate("t") == run_context()
        await asyncio.sleep(0)
    assert runs.asked == 2
    # Then it is not believed any longer than before until that has come
    clock.advance(BELIEVED_S - FRESH_S)
    waiting = asyncio.create_task(callers.authenticate("t"))
    await asyncio.sleep(0)
    assert not waiting.done()
    runs.pause.set()
    assert await waiting == run_context()


async def test_a_run_that_ended_meanwhile_is_found_out_beside_a_call(clock: ManualClock) -> None:
    runs = Runs()
    callers = Callers(runs.find, clock)
    await callers.authenticate("t")
    runs.living.clear()
    clock.advance(FRESH_S)
    assert await callers.authenticate("t") is not None
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await callers.authenticate("t") is None


async def test_a_database_that_is_away_is_not_noticed_before_it_must_be(clock: ManualClock) -> None:
    runs = Runs()

    async def find(digest: str) -> RunContext | None:
        if runs.asked:
            raise OSError("away")
        return await runs.find(digest)

    callers = Callers(find, clock)
    await callers.authenticate("t")
    clock.advance(FRESH_S)
    for _ in range(3):
        assert await callers.authenticate("t") == run_context()
        await asyncio.sleep(0)
    clock.advance(BELIEVED_S - FRESH_S)
    with pytest.raises(OSError, match="away"):
        await callers.authenticate("t")
