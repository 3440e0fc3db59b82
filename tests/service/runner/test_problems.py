"""Problems over a line that breaks, in a window of memory that is smaller than all of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi.responses import JSONResponse, Response, StreamingResponse

from runner.errors import ProblemError
from runner.items.problems import Problems
from runner.log import Log
from tests.service.runner.fake_orchestrator import RUN_ID, FakeOrchestrator, problem

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def fetching(fake: FakeOrchestrator, wanted: list[str] | None = None, **more: Any) -> AsyncIterator[Problems]:
    keys = [("sample", one) for one in wanted or [p["problem_id"] for p in fake.problems]]
    async with httpx.AsyncClient(trust_env=False) as client:
        problems = Problems(client, f"{fake.url}/runner/runs/{RUN_ID}/problems", keys, Log(), **more)
        task = asyncio.create_task(problems.fetch())
        try:
            async with asyncio.timeout(60):
                yield problems
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def many(count: int, size: int = 10) -> list[dict[str, Any]]:
    return [problem(f"p{index}", filler=[(index * 7919 + k) ** 3 for k in range(size)]) for index in range(count)]


async def test_they_come_in_any_order_that_is_asked_for(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = many(5)
    async with fetching(orchestrator) as problems:
        for index in (3, 0, 4):
            assert (await problems.get("sample", f"p{index}"))["question_id"] == f"p{index}"
    assert orchestrator.problem_reads == 1


async def test_a_cut_stream_is_read_again(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = many(6)

    def cut(n: int) -> Response | None:
        async def body() -> AsyncIterator[str]:
            yield "".join(json.dumps(one) + "\n" for one in orchestrator.problems[:3])
            yield json.dumps(orchestrator.problems[3])[:20]
            raise ConnectionResetError

        return [StreamingResponse(body()), JSONResponse({}, 503), None][min(n, 2)]

    orchestrator.before_problems = cut
    async with fetching(orchestrator) as problems:
        assert (await problems.get("sample", "p5"))["question_id"] == "p5"
        assert (await problems.get("sample", "p0"))["question_id"] == "p0"
    assert orchestrator.problem_reads == 3


async def test_a_server_that_sends_all_again_does_no_harm(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = many(4)
    lines = "".join(json.dumps(one) + "\n" for one in orchestrator.problems)
    orchestrator.before_problems = lambda n: Response(lines[: len(lines) // 2] if n == 0 else lines)
    async with fetching(orchestrator) as problems:
        assert (await problems.get("sample", "p3"))["question_id"] == "p3"


async def test_the_window_holds_back_the_stream(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = many(20, size=2000)
    async with fetching(orchestrator, max_held_bytes=30_000) as problems:
        await problems.get("sample", "p0")
        await asyncio.sleep(0.2)
        assert problems.held_bytes < 60_000
        for index in range(20):
            await problems.get("sample", f"p{index}")
            problems.release("sample", f"p{index}")
        assert problems.held_bytes == 0


async def test_a_full_window_does_not_block_what_is_waited_for(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = many(20, size=2000)
    async with fetching(orchestrator, max_held_bytes=1000) as problems:
        assert (await problems.get("sample", "p19"))["question_id"] == "p19"


async def test_what_never_comes_is_told(orchestrator: FakeOrchestrator) -> None:
    async with fetching(orchestrator, ["p1", "gone"]) as problems:
        assert await problems.get("sample", "p1")
        with pytest.raises(ProblemError, match="not delivered"):
            await problems.get("sample", "gone")


async def test_an_unreadable_line_is_left_out(orchestrator: FakeOrchestrator) -> None:
    text = 'nonsense\n{"benchmark": 1}\n\n' + json.dumps(orchestrator.problems[0])
    orchestrator.before_problems = lambda n: Response(text)
    async with fetching(orchestrator) as problems:
        assert await problems.get("sample", "p1")


async def test_a_refusal_is_final(orchestrator: FakeOrchestrator) -> None:
    orchestrator.before_problems = lambda n: JSONResponse({"detail": "the pack is gone"}, 404)
    async with fetching(orchestrator) as problems:
        with pytest.raises(ProblemError, match="the pack is gone"):
            await problems.get("sample", "p1")
