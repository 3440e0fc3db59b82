"""A provider that answers with the bytes it is given, whatever they are, behind a gateway, and a chat run that asks it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.providers import providers_from_env
from orchestrator.system.clock import SystemClock
from tests.service.gateway.gateway_parts import World, gateway, key, run_context
from tests.unit.gateway.memory_ledger import MemoryLedger

TLS = ssl.create_default_context()
KEY = "sk-canary-" + "0123456789abcdef" * 4


def answer(body: bytes, kind: str = "text/event-stream", status: str = "200 OK", extra: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}\r\n".encode() + body


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
    return json.dumps({"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})


def stream(*events: str) -> bytes:
    return "".join(f"data: {event}\n\n" for event in (*events, "[DONE]")).encode()


def used(**usage: Any) -> str:
    return json.dumps({"id": "c1", "choices": [], "usage": usage})


HELLO = stream(
    chunk({"role": "assistant", "content": "Hel"}),
    chunk({"content": "lo"}, "stop"),
    used(prompt_tokens=3, completion_tokens=2, total_tokens=5),
)


@dataclass
class OddWorld:
    """The answers are given in order, the last one from then on."""

    world: World
    ledger: MemoryLedger
    asked: list[bytes] = field(default_factory=list)

    async def ask(self, *, streamed: bool = False) -> str:
        """The text of the answer."""
        question: dict[str, Any] = {
            "model": "m",
            "messages": [{"role": "user", "content": "hi"}],
            "max_completion_tokens": 100,
            "extra_headers": key("b/p/0/0"),
        }
        async with self.world.openai("odd") as client:
            if not streamed:
                return (await client.chat.completions.create(**question)).choices[0].message.content or ""
            pieces = [
                choice.delta.content or ""
                async for piece in await client.chat.completions.create(**question, stream=True)
                for choice in piece.choices
            ]
            return "".join(pieces)

    @property
    def row(self) -> Any:
        (row,) = self.ledger.rows.values()
        return row


@contextlib.asynccontextmanager
async def odd(*answers: bytes, api_key: str = KEY, headers: dict[str, str] | None = None) -> AsyncIterator[OddWorld]:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            asked.append(head)
            writer.write(answers[min(len(asked), len(answers)) - 1])
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    env = {
        "BENCHYARD_PROVIDER_ODD_BASE_URL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1",
        "BENCHYARD_PROVIDER_ODD_API_KEY": api_key,
        "BENCHYARD_PROVIDER_ODD_HEADERS": json.dumps(headers or {}),
    }
    upstream = HttpUpstream(providers_from_env(env)["odd"], env, clock=SystemClock(), tls=TLS)
    ledger = MemoryLedger()
    run = run_context(provider="odd", model="m", slug="m")
    async with server, gateway(run, upstreams={"odd": upstream}, ledger=ledger) as world:
        yield OddWorld(world, ledger, asked)
        await upstream.close()
