"""The whole service behind a real uvicorn on 127.0.0.1, inside the test's own event loop, and a runner that speaks HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from orchestrator.app import create_app
from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.http.context import Services
from orchestrator.serving.runner_listener import QuietServer, server_config
from orchestrator.settings import Settings
from runner.contract.run_spec import CALL_KEY_HEADER, CONTRACT_VERSION, BenchmarkSpec, call_key
from tests.manual_clock import ManualClock

TOKEN = "the-right-token"
PATIENCE_S = 600
"""For everything that is waited for: what works ends the wait at once, and a busy machine has time."""
NO_TLS = False
"""Clients of plain HTTP need not read the certificates of all authorities, which takes longer than most requests."""


class Service:
    """A served application with a client that is signed in."""

    def __init__(
        self, app: FastAPI, engine: FakeEngine, clock: ManualClock, settings: Settings, server: QuietServer
    ) -> None:
        port = server.servers[0].sockets[0].getsockname()[1]
        self._server = server
        self.app = app
        self.engine = engine
        self.clock = clock
        self.settings = settings
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        headers = {"authorization": f"Bearer {TOKEN}"}
        self.client = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE_S, verify=NO_TLS)
        self.stranger = httpx.AsyncClient(base_url=self.url, timeout=PATIENCE_S, verify=NO_TLS)

    @property
    def services(self) -> Services:
        services: Services = self.app.state.services
        return services

    @property
    def connections(self) -> int:
        return len(self._server.server_state.connections)

    async def new_run(self, **fields: Any) -> str:
        body = {"model_id": "demo-strong", "sample_size": 3, **fields}
        answer = await self.client.post("/api/container-runs", json=body)
        assert answer.status_code == 202, answer.text
        run_id: str = answer.json()["run_id"]
        return run_id

    async def run(self, run_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/api/container-runs/{run_id}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def until(self, run_id: str, *statuses: str, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        async with asyncio.timeout(timeout_s):
            while (run := await self.run(run_id))["status"] not in statuses:
                await asyncio.sleep(0.03)
        return run

    async def pass_time(self, seconds: float) -> None:
        """Move the clock, and wait for a round at the new time: rounds that lie far apart look like a stall of the service,
        which renews every lease."""
        self.clock.advance(seconds)
        self.services.signals.look()
        async with asyncio.timeout(PATIENCE_S):
            while self.services.loops.last_tick < self.clock.monotonic():
                await asyncio.sleep(0.005)

    async def close(self) -> None:
        await self.client.aclose()
        await self.stranger.aclose()


@asynccontextmanager
async def served(
    settings: Settings, *, engine: FakeEngine | None = None, clock: ManualClock | None = None
) -> AsyncIterator[Service]:
    """Serve until the block ends; what is left of the data directory and the engine can be served again."""
    engine = engine or FakeEngine(behaviour=http_runner)
    clock = clock or ManualClock()
    app = create_app(settings, clock=clock, engine=engine)
    config = server_config(app, "127.0.0.1", 0)
    config.lifespan = "on"
    server = QuietServer(config)
    task = asyncio.create_task(server.serve())
    async with asyncio.timeout(PATIENCE_S):
        while not server.started:
            if task.done():
                await task
                raise RuntimeError("the service did not start")
            await asyncio.sleep(0.01)
    service = Service(app, engine, clock, settings, server)
    try:
        yield service
    finally:
        await service.close()
        app.state.services.live.end_streams()
        server.should_exit = True
        await asyncio.wait_for(task, PATIENCE_S)


class RunnerClient:
    """What a runner does over HTTP, one step at a time."""

    def __init__(self, boot_line: bytes, runner_id: str = "r1") -> None:
        boot = json.loads(boot_line)
        self.token: str = boot["token"]
        self.runner_id = runner_id
        self.seq = 0
        self.spec: dict[str, Any] = {}
        headers = {"authorization": f"Bearer {self.token}"}
        self.http = httpx.AsyncClient(base_url=boot["orchestrator_url"], headers=headers, timeout=PATIENCE_S, verify=NO_TLS)

    async def claim(self, **changed: Any) -> httpx.Response:
        body = {
            "runner_id": self.runner_id,
            "contract_version": CONTRACT_VERSION,
            "instance_type": "standard-1",
            "engine": "process",
            **changed,
        }
        answer = await self.http.post("/runner/claim", json=body)
        if answer.status_code == 200:
            self.spec = answer.json()["spec"]
        return answer

    def next(self, type_: str, **fields: Any) -> dict[str, Any]:
        self.seq += 1
        return {"type": type_, "seq": self.seq, **fields}

    def open_items(self) -> list[dict[str, Any]]:
        finished = {(key["benchmark"], key["problem_id"], key["sample_index"]) for key in self.spec["finished"]}
        return [
            {"benchmark": part["name"], "problem_id": problem_id, "sample_index": index}
            for part in self.spec["benchmarks"]
            for problem_id, index in BenchmarkSpec.model_validate(part).items(self.spec["samples_per_problem"])
            if (part["name"], problem_id, index) not in finished
        ]

    async def ask(self, item: dict[str, Any]) -> bool:
        """The model call of an item, through the gateway. Where the model has no server, the item cannot pass."""
        model = self.spec["model"]
        key = call_key(item["benchmark"], item["problem_id"], item.get("sample_index", 0))
        path = {"anthropic": "messages", "openai_chat": "chat/completions", "openai_responses": "responses"}[
            model["protocol"]
        ]
        body: dict[str, Any] = {"model": model["name"], "messages": [{"role": "user", "content": key}], "max_tokens": 64}
        if path == "responses":
            body = {"model": model["name"], "input": key, "max_output_tokens": 64}
        url = f"/gateway/{model['provider']}/v1/{path}"
        return (await self.http.post(url, json=body, headers={CALL_KEY_HEADER: key})).is_success

    async def send(self, *events: dict[str, Any], run_id: str | None = None, attempt: int | None = None) -> httpx.Response:
        """Post events. An item that passed was asked about before."""
        if self.spec.get("kind") == "benchmark":
            for event in events:
                if event["type"] == "progress" and event.get("item", {}).get("outcome") == "passed":
                    await self.ask(event["item"])
        path = f"/runner/runs/{run_id or self.spec['run_id']}/events"
        return await self.http.post(path, json={"attempt": attempt or self.spec["attempt"], "events": list(events)})

    async def close(self) -> None:
        await self.http.aclose()


Outcomes = Callable[[int], str]


async def http_runner(container: FakeContainer) -> int:
    """A runner that passes every other item and completes."""
    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        if (await runner.claim()).status_code != 200:
            return 3
        await runner.send(runner.next("stage", stage="running"))
        items = runner.open_items()
        for number, item in enumerate(items):
            await container.checkpoint()
            outcome = "passed" if number % 2 == 0 else "wrong_answer"
            answer = await runner.send(runner.next("progress", item={**item, "outcome": outcome}))
            if answer.status_code != 200:
                return 3
            if answer.json()["desired"] == "cancel":
                return 0
        container.write(b"all done\n")
        done = len(runner.spec["finished"]) + len(items)
        await runner.send(runner.next("log", message="all items done"), runner.next("complete", items=done))
        return 0
    finally:
        await runner.close()
