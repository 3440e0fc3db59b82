"""Server-sent events: replay across a restart, push, the end of a run, and clients that do not read."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlmodel import Session

from orchestrator.engines.fake.container import until_terminated
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.live.feed import REPLAY_PAGE, REPLAYS_AT_ONCE
from orchestrator.settings import Settings
from tests.manual_clock import START
from tests.served import TOKEN, Service, served

pytestmark = pytest.mark.anyio


async def read_events(response: httpx.Response, until: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    kind = ""
    async with asyncio.timeout(60):
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                found.append({"kind": kind, **json.loads(line.removeprefix("data: "))})
                if until(found):
                    break
    return found


def ended(events: list[dict[str, Any]]) -> bool:
    return events[-1]["kind"] == "end"


async def test_one_run_from_its_beginning_to_its_end(service: Service) -> None:
    run_id = await service.new_run()
    async with service.client.stream("GET", f"/api/container-runs/{run_id}/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = await read_events(response, ended)
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "created"
    assert kinds[-3:] == ["complete", "transition", "end"]
    assert kinds.count("progress") == 3
    numbers = [event["id"] for event in events[:-1]]
    assert numbers == sorted(numbers)
    # Whoever saw the end and comes back is told again, instead of waiting for ever.
    headers = {"last-event-id": str(numbers[-1])}
    async with service.client.stream("GET", f"/api/container-runs/{run_id}/stream", headers=headers) as response:
        assert [event["kind"] for event in await read_events(response, ended)] == ["end"]


async def test_replay_across_a_restart(new_settings: Callable[..., Settings]) -> None:
    async with served(new_settings()) as first:
        run_id = await first.new_run()
        await first.until(run_id, "completed")
        async with first.client.stream("GET", "/api/events?after=0") as response:
            before = await read_events(response, lambda events: len(events) == 4)
        await first.engine.end_all()
    async with served(new_settings()) as second:
        headers = {"last-event-id": str(before[-1]["id"])}
        async with second.client.stream("GET", "/api/events", headers=headers) as response:
            second_id = await second.new_run()
            after = await read_events(response, lambda events: events[-1].get("run_id") == second_id)
        await second.engine.end_all()
    numbers = [event["id"] for event in before + after]
    assert numbers == list(range(1, len(numbers) + 1)), "something was missed or told twice"


async def test_from_now_on_and_at_once(service: Service) -> None:
    service.engine.behaviour = until_terminated
    await service.new_run()
    async with service.client.stream("GET", "/api/events") as response:
        await asyncio.sleep(0.2)
        task = asyncio.create_task(read_events(response, lambda events: events[-1]["kind"] == "created"))
        await asyncio.sleep(0.1)
        run_id = await service.new_run()
        events = await task
    assert events[-1]["run_id"] == run_id


async def test_a_frozen_client_is_dropped(new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    """F22: its connection, its queue and its file descriptor come back."""
    monkeypatch.setattr("orchestrator.serving.timeouts.TAKE_LIMIT_S", 0.5)
    async with served(new_settings()) as service:
        frozen = socket.socket()
        frozen.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        frozen.connect(("127.0.0.1", service.port))
        frozen.sendall(f"GET /api/events?after=0 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\r\n".encode())

        def flood(session: Session) -> None:
            for number in range(400):
                event_queries.append(session, "log", START, data={"message": "x" * 20_000, "n": number})

        async with asyncio.timeout(60):
            while service.services.live.clients == 0:
                await asyncio.sleep(0.01)
            await service.services.db.write(flood)
            while service.services.live.clients > 0 or service.connections:
                await asyncio.sleep(0.05)
        frozen.close()
        assert (await service.client.get("/healthz")).status_code == 200


async def test_a_client_that_goes_away_is_forgotten(service: Service) -> None:
    assert "benchyard_stream_clients 0.0" in (await service.client.get("/metrics")).text
    async with service.client.stream("GET", "/api/events"):
        async with asyncio.timeout(60):
            while service.services.live.clients != 1:
                await asyncio.sleep(0.01)
    async with asyncio.timeout(60):
        while service.services.live.clients > 0:
            await asyncio.sleep(0.01)


async def test_a_stop_ends_open_streams_quickly(new_settings: Callable[..., Settings]) -> None:
    async with asyncio.timeout(60):
        async with served(new_settings()) as service:
            client = httpx.AsyncClient(base_url=service.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60)
            request = client.build_request("GET", "/api/events")
            response = await client.send(request, stream=True)
        await response.aread()
        await response.aclose()
        await client.aclose()


async def test_a_stream_ends_with_its_token(service: Service) -> None:
    tokens = [(await service.client.post("/api/tokens", json={"name": n, "expires_in_days": 1})).json() for n in ("a", "b")]
    revoked, expiring = (
        httpx.AsyncClient(base_url=service.url, headers={"authorization": f"Bearer {each['token']}"}, timeout=60)
        for each in tokens
    )
    run_id = await service.new_run()
    await service.until(run_id, "completed")
    async with (
        revoked,
        expiring,
        revoked.stream("GET", "/api/events?after=0") as one,
        expiring.stream("GET", "/api/events") as other,
        asyncio.timeout(60),
    ):
        await read_events(one, lambda events: len(events) == 4)
        assert (await service.client.delete(f"/api/tokens/{tokens[0]['id']}")).status_code == 204
        while service.services.live.clients > 1:
            await asyncio.sleep(0.05)
        service.clock.advance(24 * 3600 + 1)
        assert b"this sign-in has ended" in await other.aread()
    assert service.services.live.clients == 0


async def test_many_who_catch_up_take_turns(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many clients replay the log at once, only a few of them use the database at a time."""
    await service.services.db.write(_noise(1000))
    reading = most = 0
    lock, original = threading.Lock(), event_queries.after

    def counted(session: Session, number: int, **options: Any) -> Any:
        nonlocal reading, most
        if options.get("limit") != REPLAY_PAGE:
            return original(session, number, **options)  # the service's own tail
        with lock:
            reading += 1
            most = max(most, reading)
        page = original(session, number, **options)
        with lock:
            reading -= 1
        return page

    monkeypatch.setattr(event_queries, "after", counted)

    async def replay() -> list[int]:
        async with service.client.stream("GET", "/api/events?after=0") as response:
            events = await read_events(response, lambda found: len(found) >= 1000)
        return [event["id"] for event in events]

    replays = await asyncio.gather(*(replay() for _ in range(20)))
    assert all(numbers == sorted(set(numbers)) for numbers in replays)
    assert 1 <= most <= REPLAYS_AT_ONCE


def _noise(count: int) -> Callable[[Session], None]:
    def write(session: Session) -> None:
        for number in range(count):
            event_queries.append(session, "noise", START, data={"number": number})

    return write
