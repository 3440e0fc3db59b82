"""The reporter against a server that loses, refuses and forgets."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi.responses import JSONResponse

from runner.contract.events import FailureReason, ItemResult, Outcome, Stage
from runner.log import Log
from runner.reporting.reporter import Reporter, Stop
from runner.reporting.usage_samples import UsageLog
from tests.service.runner.fake_orchestrator import RUN_ID, FakeOrchestrator, serving

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def reporting(fake: FakeOrchestrator, **more: Any) -> AsyncIterator[Reporter]:
    usage = UsageLog(lambda: None)
    own = {"attempt": 1, "heartbeat_s": 60.0, "batch_s": 0.01, "log": Log(), "boot_acked": False, "usage": usage}
    async with (
        httpx.AsyncClient(timeout=20.0, trust_env=False) as client,
        Reporter(client, f"{fake.url}/runner/runs/{RUN_ID}/events", **{**own, **more}) as reporter,
    ):
        yield reporter


def item(problem_id: str, **more: Any) -> ItemResult:
    return ItemResult(benchmark="b", problem_id=problem_id, outcome=Outcome.PASSED, **more)


async def report(reporter: Reporter, count: int) -> None:
    for index in range(count):
        await reporter.item(item(str(index)))
    async with asyncio.timeout(60):
        await reporter.complete()


def numbers(fake: FakeOrchestrator) -> list[int]:
    return sorted(fake.events)


async def test_events_are_numbered_and_batched(orchestrator: FakeOrchestrator) -> None:
    async with reporting(orchestrator, batch_s=0.05) as reporter:
        await report(reporter, 30)
    assert numbers(orchestrator) == list(range(1, 33))
    assert [event["type"] for event in orchestrator.events.values()] == ["stage", *["progress"] * 30, "complete"]
    assert len(orchestrator.posts) < 6


async def test_an_acknowledged_boot_event_is_not_sent_again(orchestrator: FakeOrchestrator) -> None:
    orchestrator.events[1] = {"type": "stage", "seq": 1, "stage": "boot"}
    async with reporting(orchestrator, boot_acked=True) as reporter:
        reporter.stage(Stage.RUNNING)
        await reporter.flush()
    assert orchestrator.posts == [[2]]


@pytest.mark.parametrize("fault", ["lost after commit", "500 before", "503 before", "404 before", "garbage"])
async def test_every_fault_is_outlived(orchestrator: FakeOrchestrator, fault: str) -> None:
    broken = {
        "lost after commit": JSONResponse({}, 502),
        "garbage": JSONResponse(["what"]),
        "500 before": JSONResponse({}, 500),
        "503 before": JSONResponse({}, 503, headers={"Retry-After": "0"}),
        "404 before": JSONResponse({}, 404),
    }[fault]
    knob = "before_event" if "before" in fault else "after_event"
    setattr(orchestrator, knob, lambda n: broken if n in (0, 2) else None)
    async with reporting(orchestrator) as reporter:
        await report(reporter, 10)
    assert numbers(orchestrator) == list(range(1, 13))
    assert len(orchestrator.of("progress")) == 10


async def test_a_server_that_is_away_and_comes_back(orchestrator: FakeOrchestrator) -> None:
    other = FakeOrchestrator()
    with serving(other.app()) as url:
        other.url = url
    port = int(url.rsplit(":", 1)[1])
    async with reporting(other) as reporter:
        await reporter.item(item("1"))
        await asyncio.sleep(0.3)
        assert other.events == {}
        with serving(other.app(), port):
            await report(reporter, 3)
    assert numbers(other) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("status", [401, 403, 409, 410])
async def test_a_superseded_runner_stops(orchestrator: FakeOrchestrator, status: int) -> None:
    orchestrator.before_event = lambda n: JSONResponse({"detail": "newer attempt"}, status)
    async with reporting(orchestrator) as reporter, asyncio.timeout(60):
        assert await reporter.stop is Stop.SUPERSEDED
        await asyncio.sleep(0.1)
    assert len(orchestrator.posts) == 1


async def test_cancel_is_heard(orchestrator: FakeOrchestrator) -> None:
    orchestrator.desired = "cancel"
    async with reporting(orchestrator) as reporter, asyncio.timeout(60):
        assert await reporter.stop is Stop.CANCELLED


async def test_a_server_that_forgets_is_noticed(orchestrator: FakeOrchestrator) -> None:
    async with reporting(orchestrator) as reporter, asyncio.timeout(60):
        await reporter.item(item("1"))
        await reporter.flush()
        orchestrator.events.clear()
        await reporter.item(item("2"))
        assert await reporter.stop is Stop.LOST


async def test_heartbeats_come_by_themselves_and_tell_the_state(orchestrator: FakeOrchestrator) -> None:
    began = time.monotonic()
    async with reporting(orchestrator, heartbeat_s=0.1) as reporter, asyncio.timeout(60):
        reporter.waiting_for = lambda: "the gateway"
        while len(orchestrator.of("heartbeat")) < 3:
            await asyncio.sleep(0.01)
        await reporter.failed(FailureReason.RUNNER_ERROR, "x")
        most = (time.monotonic() - began) / 0.1 + 1
        await asyncio.sleep(0.25)
    beats = orchestrator.of("heartbeat")
    assert len(beats) <= most
    assert beats[0]["waiting_for"] == "the gateway"
    assert orchestrator.events[max(orchestrator.events)]["type"] == "failed"


async def test_heartbeats_do_not_pile_up_in_an_outage(orchestrator: FakeOrchestrator) -> None:
    orchestrator.before_event = lambda n: JSONResponse({}, 500)
    async with reporting(orchestrator, heartbeat_s=0.05) as reporter, asyncio.timeout(60):
        while len(orchestrator.posts) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.6)
        orchestrator.before_event = lambda n: None
        await reporter.flush()
    assert orchestrator.accepted[0].count("heartbeat") <= 3


async def test_a_full_backlog_pauses_the_work_and_loses_nothing(orchestrator: FakeOrchestrator) -> None:
    orchestrator.before_event = lambda n: JSONResponse({}, 500)
    async with reporting(orchestrator, max_backlog_bytes=20_000) as reporter:

        async def produce() -> None:
            for index in range(50):
                await reporter.item(item(str(index), answer="x" * 1000))

        work = asyncio.create_task(produce())
        await asyncio.sleep(0.3)
        assert not work.done()
        orchestrator.before_event = lambda n: None
        async with asyncio.timeout(60):
            await work
            await reporter.complete()
    assert len(orchestrator.of("progress")) == 50


async def test_what_is_too_large_is_cut_and_never_dropped(orchestrator: FakeOrchestrator) -> None:
    orchestrator.max_body = 30_000
    async with reporting(orchestrator) as reporter:
        await reporter.item(item("big", answer="y" * 200_000, code="print(1)", tests_total=7))
        await report(reporter, 20)
    assert orchestrator.items["big"]["answer"].startswith("yyyy")
    assert "more characters were cut" in orchestrator.items["big"]["answer"]
    assert (orchestrator.items["big"]["outcome"], orchestrator.items["big"]["tests_total"]) == ("passed", 7)
    assert orchestrator.items["big"]["code"] == "print(1)"
    assert len(orchestrator.of("progress")) == 21


async def test_batches_stay_small(orchestrator: FakeOrchestrator) -> None:
    async with reporting(orchestrator) as reporter:
        for index in range(6):
            await reporter.item(item(str(index), answer="z" * 1_500_000))
        await report(reporter, 1200)
    assert max(orchestrator.post_bytes) < 4 << 20 | 1000
    assert max(map(len, orchestrator.posts)) <= 500
    assert numbers(orchestrator)[-1] == 1208


async def test_sends_keep_their_distance(orchestrator: FakeOrchestrator) -> None:
    """Many events share few sends: one for every `batch_s` that passed, whatever the machine's pace."""
    began = asyncio.get_running_loop().time()
    async with reporting(orchestrator, batch_s=0.2) as reporter:
        for index in range(40):
            await reporter.item(item(str(index)))
            await asyncio.sleep(0.01)
    passed_s = asyncio.get_running_loop().time() - began
    assert len(orchestrator.posts) <= passed_s / 0.2 + 2


async def test_flush_is_quick_in_the_middle_of_a_pause(orchestrator: FakeOrchestrator) -> None:
    async with reporting(orchestrator, batch_s=600.0) as reporter:
        await reporter.flush()
        await reporter.item(item("1"))
        async with asyncio.timeout(60):
            await reporter.flush()
