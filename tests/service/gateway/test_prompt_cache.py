"""Shared beginnings of prompts, marked for a server that keeps prompts as Anthropic's does, through the real SDK: one call
writes, the others read, and the saving is in the ledger."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orchestrator.gateway.ledger.prices import Prices
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.kinds.prompt_cache import PromptCache
from orchestrator.gateway.upstream.providers import providers_from_env
from orchestrator.system.clock import SystemClock
from tests.service.gateway.gateway_parts import World, gateway, key, run_context
from tests.service.gateway.gateway_server import serving
from tests.service.gateway.odd_provider import TLS
from tests.service.gateway.test_kinds import MESSAGE
from tests.unit.gateway.memory_ledger import MemoryLedger

pytestmark = pytest.mark.anyio

EXAMPLES = "".join(f"Question: what is {n} + {n}?\nAnswer: {2 * n}\n\n" for n in range(150))
PRICES = Prices(Decimal(4), Decimal(20), Decimal("0.4"), Decimal(5))


@dataclass
class CachingServer:
    """https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching: what stands before a mark is kept once an answer
    has begun, if it is long enough; a token is a character here. `begun` lets answers begin."""

    least: int = 4000
    refuses: bool = False
    kept: set[str] = field(default_factory=set)
    asked: list[dict[str, Any]] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def messages(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.asked.append(body)
        if self.refuses and "cache_control" in json.dumps(body):
            error = {
                "type": "invalid_request_error",
                "message": "messages.0.content.0.cache_control: Extra inputs are not permitted",
            }
            return JSONResponse({"type": "error", "error": error}, 400)
        await self.begun.wait()
        blocks = [block for message in body["messages"] for block in parts(message["content"])]
        total = sum(len(block["text"]) for block in blocks)
        before, read, written = "", 0, 0
        for block in blocks:
            before += block["text"]
            if "cache_control" in block and len(before) >= self.least:
                read, written = (len(before), 0) if before in self.kept else (0, len(before))
                self.kept.add(before)
        usage = {
            **{"input_tokens": total - read - written, "output_tokens": 5},
            **{"cache_read_input_tokens": read, "cache_creation_input_tokens": written},
        }
        return JSONResponse({**MESSAGE, "usage": usage})


def parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@dataclass
class Asking:
    world: World
    server: CachingServer
    ledger: MemoryLedger

    async def ask(self, number: int, text: Any = None) -> None:
        text = f"{EXAMPLES}Question: what is {number} * 7?\nAnswer:" if text is None else text
        async with self.world.anthropic("claude") as client:
            await client.messages.create(
                model="m", max_tokens=50, messages=[{"role": "user", "content": text}], extra_headers=key(f"b/p{number}/0/0")
            )

    def marks(self) -> list[bool]:
        return ["cache_control" in json.dumps(body) for body in self.server.asked]

    def saved(self) -> int:
        return sum(row.settlement.cache_saving_nano_usd for row in self.ledger.rows.values() if row.settlement)


@contextlib.asynccontextmanager
async def asking(server: CachingServer) -> AsyncIterator[Asking]:
    server.begun.set()
    async with serving(Starlette(routes=[Route("/v1/messages", server.messages, methods=["POST"])])) as url:
        env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-cache-0123456789"}
        upstream = HttpUpstream(
            providers_from_env(env)["anthropic"], env, clock=SystemClock(), tls=TLS, prompt_cache=PromptCache()
        )
        ledger = MemoryLedger()
        context = run_context(provider="claude", model="m", slug="m", prices=PRICES)
        async with gateway(context, upstreams={"claude": upstream}, ledger=ledger) as world:
            yield Asking(world, server, ledger)
        await upstream.close()


async def test_one_writes_and_the_others_read() -> None:
    async with asking(CachingServer()) as there:
        await there.ask(1)
        await there.ask(2)
        await asyncio.gather(*(there.ask(number) for number in range(3, 9)))
        assert there.marks() == [False, *[True] * 7]
        ((kept,),) = [there.server.kept]
        assert kept == EXAMPLES
        assert there.saved() == len(EXAMPLES) * (6 * (4000 - 400) - 1000)
        text, rest = there.server.asked[-1]["messages"][0]["content"]
        assert text["text"] + rest["text"] == f"{EXAMPLES}{rest['text']}"


async def test_while_one_writes_the_others_are_not_marked() -> None:
    """All would pay for writing otherwise."""
    async with asking(CachingServer()) as there:
        await there.ask(1)
        there.server.begun.clear()
        waiting = [asyncio.create_task(there.ask(number)) for number in range(2, 8)]
        while len(there.server.asked) < 7:
            await asyncio.sleep(0.01)
        there.server.begun.set()
        await asyncio.gather(*waiting)
        assert sum(there.marks()) == 1


async def test_what_no_model_keeps_is_not_marked_again() -> None:
    async with asking(CachingServer(least=10**6)) as there:
        for number in range(5):
            await there.ask(number)
        assert there.marks() == [False, True, False, False, False]
        assert there.saved() == 0


async def test_a_server_that_refuses_the_mark_is_asked_without_it() -> None:
    async with asking(CachingServer(refuses=True)) as there:
        for number in range(4):
            await there.ask(number)
        assert there.marks() == [False, True, False, False, False]
        assert all(row.settlement for row in there.ledger.rows.values())


@pytest.mark.parametrize("kind", ["short", "different", "parts"])
async def test_nothing_is_marked_where_it_cannot_pay(kind: str) -> None:
    def text(number: int) -> Any:
        match kind:
            case "short":
                return f"Be brief.\n\nQuestion {number}"
            case "different":
                return f"{number}{EXAMPLES}"
            case _:
                return [{"type": "text", "text": EXAMPLES}, {"type": "text", "text": str(number)}]

    async with asking(CachingServer()) as there:
        for number in range(3):
            await there.ask(number, text(number))
        assert there.marks() == [False] * 3
