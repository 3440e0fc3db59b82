"""Every connection of a runner to its orchestrator notices by itself that nobody is at the other end any more."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator

import httpx
import pytest

from runner.attempt import orchestrator_client
from runner.contract.run_spec import ModelSpec
from runner.llm.client import Prompt, open_client
from runner.process.boot import DEAD_AFTER_S, SOCKET_OPTIONS, Link
from tests.service.runner.fake_orchestrator import RUN_TOKEN, FakeOrchestrator, chat_stream, message_stream

pytestmark = pytest.mark.anyio


def connections_to(url: str) -> Iterator[dict[str, int]]:
    """The options of every open connection of this process to that server."""
    port = int(url.rsplit(":", 1)[1])
    for name in os.listdir("/proc/self/fd"):
        try:
            found = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        with found:
            try:
                if found.getpeername()[1] != port:
                    continue
            except (OSError, IndexError):
                continue
            yield {
                "alive": found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                "unacknowledged_ms": found.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
                "first_probe_s": found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
                "probe_every_s": found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
                "probes": found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
            }


def assert_they_notice(url: str) -> None:
    found = list(connections_to(url))
    assert found
    for one in found:
        assert one["alive"]
        assert 0 < one["unacknowledged_ms"] <= 1000 * DEAD_AFTER_S
        assert one["first_probe_s"] + one["probes"] * one["probe_every_s"] <= 2 * DEAD_AFTER_S


def test_the_options_are_there_on_linux() -> None:
    assert len(SOCKET_OPTIONS) == 5


async def test_the_first_requests(orchestrator: FakeOrchestrator) -> None:
    link = Link(orchestrator.url)
    for _ in range(2):
        await asyncio.to_thread(link.post, "/runner/nowhere", "token", {})
        assert_they_notice(orchestrator.url)
        link.close()


async def test_events_and_problems(orchestrator: FakeOrchestrator) -> None:
    async with orchestrator_client(RUN_TOKEN) as client:
        answer = await client.get(f"{orchestrator.url}/runner/nowhere")
        assert answer.request.headers["authorization"] == f"Bearer {RUN_TOKEN}"
        assert_they_notice(orchestrator.url)
        assert client.timeout == httpx.Timeout(30.0, connect=5.0)


@pytest.mark.parametrize("protocol", ["anthropic", "openai_chat"])
async def test_model_calls(orchestrator: FakeOrchestrator, protocol: str) -> None:
    orchestrator.answer = lambda key, body: (message_stream if protocol == "anthropic" else chat_stream)("four")
    model = {"slug": "m", "provider": "demo", "name": "demo-1", "protocol": protocol, "max_tokens": 100}
    client = open_client(ModelSpec.model_validate(model), f"{orchestrator.url}/gateway", RUN_TOKEN)
    try:
        await client.complete(Prompt("", "Twice two?", "v1"), "sample/p/0/0")
        assert_they_notice(orchestrator.url)
    finally:
        await client.close()
