"""The agent's own work, with a whole service at the other end: claim, launch, report, clean up, and outlive silence."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from orchestrator.agent.link import Link, LinkLost, LinkRefused
from orchestrator.agent.loop import AgentLoop, AgentOptions
from orchestrator.engines.engine import ContainerFacts, ContainerState, LaunchRequest
from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.settings import Settings
from tests.served import RunnerClient, Service, http_runner, served

pytestmark = pytest.mark.anyio

PATIENCE_S = 180
OPTIONS: dict[str, Any] = {
    "agent_id": "agent001",
    "name": "far",
    "provider": "elsewhere",
    "instance_types": ("standard-1",),
    "image": "benchyard-runner:latest",
    "heartbeat_s": 0.2,
}


@asynccontextmanager
async def agent(service: Service, engine: FakeEngine, **changed: Any) -> AsyncIterator[tuple[AgentLoop, asyncio.Task[None]]]:
    loop = AgentLoop(
        engine, Link(service.client, rng=random.Random(1)), AgentOptions(**OPTIONS | changed), door_url=lambda: service.url
    )
    task = asyncio.create_task(loop.run())
    try:
        yield loop, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Any, what: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.02)
    assert condition(), what


class SlowStart(FakeEngine):
    """As a real engine: made first, started some time after, and a list may have been read in between."""

    async def launch(self, request: Any) -> ContainerFacts:
        self.faults.start_lost = True
        try:
            await super().launch(request)
        except Exception:
            self.faults.start_lost = False
        for watcher in self._watchers:
            watcher.put_nowait(request.name)
        await asyncio.sleep(0.5)
        return await super().launch(request)


async def test_an_agent_from_its_first_claim_until_it_is_told_to_leave(service: Service) -> None:
    engine = SlowStart("agent", behaviour=http_runner, cpus=1)
    async with agent(service, engine, debug=True) as (loop, work):
        # What is being launched is not cleared away; never more at once than there are processors
        runs = [await service.new_run(provider="elsewhere") for _ in range(4)]
        for run_id in runs:
            run = await service.until(run_id, "completed", "failed", timeout_s=PATIENCE_S)
            assert (run["status"], run["attempt"]) == ("completed", 1)
        assert 1 <= engine.most_live <= 2, "a standard-1 is half a processor"
        # With --debug what failed is kept, and told of once
        engine.faults.exit_at_once = 7
        failing = await service.new_run(provider="elsewhere")
        await until(lambda: loop.kept, "the failed one is kept")
        await service.client.post(f"/api/container-runs/{failing}/cancel")
        engine.faults.exit_at_once = None
        await service.until(failing, "cancelled", timeout_s=PATIENCE_S)
        kept = {name for name in loop.kept if name.endswith("-a1")}
        assert len(kept) == 1
        # An engine that is away for a while ends nothing
        last = await service.new_run(provider="elsewhere")
        await service.until(last, "running", "completed", timeout_s=PATIENCE_S)
        engine.faults.unreachable = True
        (known,) = (await service.client.get("/api/agents")).json()["items"]
        await service.client.delete(f"/api/agents/{known['id']}")
        await asyncio.sleep(0.5)
        assert not work.done()
        engine.faults.unreachable = False
        async with asyncio.timeout(PATIENCE_S):
            await work
        await service.until(last, "completed", timeout_s=PATIENCE_S)
    assert not service.engine.containers, "nothing of it was started here"
    assert {name for name, each in engine.containers.items() if each.state is ContainerState.EXITED} == loop.kept
    assert len(engine.containers) == len(loop.kept)
    assert (await service.client.get("/api/agents")).json()["items"] == []


async def test_what_ends_after_the_agent_was_forgotten_is_cleared_away(service: Service) -> None:
    """Its run is complete, so the service lets the agent go; its container ends a moment later, and is not killed before."""
    ended = asyncio.Event()

    async def lingers(container: FakeContainer) -> int:
        code = await http_runner(container)
        await ended.wait()
        return code

    engine = FakeEngine("agent", behaviour=lingers, cpus=1)
    async with agent(service, engine, stop_grace_s=PATIENCE_S) as (_, work):
        run_id = await service.new_run(provider="elsewhere")
        await service.until(run_id, "completed", timeout_s=PATIENCE_S)
        await service.client.delete("/api/agents/agent001")
        async with asyncio.timeout(PATIENCE_S):
            while (await service.client.get("/api/agents")).json()["items"]:
                await asyncio.sleep(0.05)
            assert not work.done()
            ended.set()
            await work
    assert not engine.containers


class LongLogs(FakeEngine):
    """Thirty containers have ended at once, and each wrote much that is no text."""

    ended = frozenset(f"benchyard-run-{number}-a1" for number in range(30))

    async def list(self) -> list[ContainerFacts]:
        now = datetime.now(UTC)
        return [ContainerFacts(name, "", ContainerState.EXITED, None, None, None, now) for name in self.ended]

    async def logs(self, name: str, *, tail_bytes: int) -> bytes:
        return b"\xff" * tail_bytes

    async def remove(self, name: str) -> None:
        self.ended = self.ended - {name}


async def test_many_ends_with_long_logs_fit_into_one_report(service: Service) -> None:
    engine = LongLogs("agent", behaviour=http_runner, cpus=1)
    async with agent(service, engine) as (_, work):
        await until(lambda: work.done() or not engine.ended, "all are told of and cleared away")
        assert not work.done()


async def test_a_container_that_somebody_removes_is_told_as_gone(service: Service) -> None:
    async def waits(container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            await runner.claim()
            await asyncio.Event().wait()
        finally:
            await runner.close()
        return 0

    engine = FakeEngine("agent", behaviour=waits, cpus=1)
    async with agent(service, engine) as (loop, _):
        run_id = await service.new_run(provider="elsewhere")
        await service.until(run_id, "running", timeout_s=PATIENCE_S)
        await until(lambda: loop._alive, "the service was told of it")
        (name,) = engine.containers
        engine.vanish(name)
        run = await service.until(run_id, "pending", timeout_s=PATIENCE_S)
        assert [each["reason"] for each in run["attempts"]] == ["container_gone"]


async def test_nothing_is_claimed_while_runners_would_reach_too_much(service: Service) -> None:
    """As on a cluster whose network policy has not been probed yet: the agent waits for it, and is not known before."""
    engine = FakeEngine("agent", behaviour=http_runner, cpus=1)
    engine.faults.unguarded = "The network policy is being probed."
    async with agent(service, engine) as (loop, work):
        run_id = await service.new_run(provider="elsewhere")
        await until(lambda: loop._hold, "it has looked")
        assert (await service.client.get("/api/agents")).json()["items"] == []
        assert not work.done()
        engine.faults.unguarded = None
        run = await service.until(run_id, "completed", timeout_s=PATIENCE_S)
        assert (run["attempt"], len(run["attempts"])) == (1, 1)


async def test_an_order_that_finds_no_room_waits_and_costs_no_attempt(service: Service, monkeypatch: Any) -> None:
    monkeypatch.setattr("orchestrator.agent.loop.NO_ROOM_S", 0.05)
    engine = FakeEngine("agent", behaviour=http_runner, cpus=1)
    engine.faults.no_room = "exceeded quota: runners"
    async with agent(service, engine) as (loop, _):
        first = await service.new_run(provider="elsewhere")
        await until(lambda: loop._no_room, "it was tried")
        (name,) = loop._no_room
        cancelled = await service.client.post(f"/api/container-runs/{first}/cancel")
        assert cancelled.status_code == 202
        await service.until(first, "cancelled", timeout_s=PATIENCE_S)
        second = await service.new_run(provider="elsewhere")
        await until(lambda: loop._no_room - {name}, "the next one was tried")
        engine.faults.no_room = None
        run = await service.until(second, "completed", timeout_s=PATIENCE_S)
        assert (run["attempt"], len(run["attempts"])) == (1, 1)


class SlowRegistry(FakeEngine):
    """A user's image takes for ever to fetch."""

    async def launch(self, request: LaunchRequest) -> ContainerFacts:
        if request.guest:
            await asyncio.Event().wait()
        return await super().launch(request)


async def test_nothing_waits_for_an_image_that_is_being_fetched(new_settings: Callable[..., Settings]) -> None:
    engine = SlowRegistry("agent", behaviour=http_runner, cpus=2)
    async with served(new_settings(command_images=("py:*",))) as service, agent(service, engine) as (loop, _):
        said: list[dict[str, Any]] = []
        post = loop._link.post

        async def listening(path: str, body: dict[str, Any]) -> Any:
            said.extend(body.get("containers", []))
            return await post(path, body)

        loop._link.post = listening  # type: ignore[method-assign]
        command = {"kind": "command", "provider": "elsewhere", "command": {"image": "py:3", "command": "true"}}
        fetching = (await service.client.post("/api/container-runs", json=command)).json()["run_id"]
        await service.until(fetching, "starting", timeout_s=PATIENCE_S)
        for _ in range(3):
            run = await service.until(await service.new_run(provider="elsewhere"), "completed", timeout_s=PATIENCE_S)
            assert run["attempt"] == 1
        assert (await service.run(fetching))["status"] == "starting"
        assert any(each.get("fetching") for each in said), "the service hears that it takes time"
        await service.client.post(f"/api/container-runs/{fetching}/cancel")
        run = await service.until(fetching, "cancelled", timeout_s=PATIENCE_S)
        assert run["reason"] == "cancelled_by_user"
    assert not engine.containers


class Answers(httpx.AsyncBaseTransport):
    def __init__(self, *statuses: int | None) -> None:
        self.statuses = [*statuses]
        self.asked = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status is None:
            raise httpx.ConnectError("nobody listens")
        return httpx.Response(status, json={"detail": "no"} if status >= 400 else {"stop": []})


async def test_silence_is_outlived_for_ten_minutes_and_a_refusal_is_final() -> None:
    clock = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    def link(transport: Answers) -> Link:
        client = httpx.AsyncClient(transport=transport, base_url="http://o")
        return Link(client, rng=random.Random(1), now=lambda: clock, sleep=sleep)

    assert await link(Answers(None, 503, 429, 200)).post("/x", {}) == {"stop": []}
    began, silent = clock, Answers(None)
    with pytest.raises(LinkLost, match="did not answer for 600 s"):
        await link(silent).post("/x", {})
    assert 500 < clock - began <= 600
    assert silent.asked > 30
    refusing = Answers(403)
    with pytest.raises(LinkRefused):
        await link(refusing).post("/x", {})
    assert refusing.asked == 1
