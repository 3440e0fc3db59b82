"""A provider that counts: all three protocols, streamed, and a model list, as a process of its own.

    python -m tests.faults.counting_provider PORT LATENCY_S PROGRAM [ADDRESS]

`GET /seen` tells every request it was sent (or only those with `?seed=`), in order: when, path, who asked with which key,
and the question. A prompt that contains the word of `POST /refuse` is refused with the sentence given there, `{key}` being
the asker's. After `POST /hold` each path answers one question, and the next ones once `POST /go` was sent. `POST /allow`
says how many questions it answers in all, until a higher number is sent. `POST /programs` gives the programs that questions
with a seed are answered with, in turn. `POST /troubles` says how often each question with a seed is answered with trouble
before it is answered properly, and with which (`provider_troubles.py`).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.faults.service import ROOT, free_ports, wait_for

PROGRAM = "print(input())"
ANSWER = "Read a line, print it.\n```python\n{}\n```\n"
MODELS = ("counting", "counting-large")


@dataclass(frozen=True)
class Troubles:
    kinds: list[str]
    times: int

    def of(self, number: int) -> str | None:
        """What becomes of the try with this number."""
        return self.kinds[(number - 1) % len(self.kinds)] if number <= self.times else None


def app(latency_s: float, program: str) -> Any:
    """The server; its imports are only needed in its own process."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    from tests.faults.provider_troubles import trouble
    from tests.service.gateway.fake_provider import stream_of

    programs: dict[int, list[str]] = {}
    troubles: dict[int, Troubles] = {}
    tries: Counter[str] = Counter()
    seen: list[dict[str, Any]] = []
    refusals: dict[str, str] = {}
    answered: set[str] = set()
    going = asyncio.Event()
    going.set()
    allowed = asyncio.Condition()
    answers = {"given": 0, "most": sys.maxsize}

    def note(request: Request, question: Any) -> str:
        key = request.headers.get("authorization") or request.headers.get("x-api-key", "")
        seen.append({"path": request.url.path, "authorization": key, "question": question, "at": time.time()})
        return key

    async def ask(request: Request) -> Response:
        question = await request.json()
        key = note(request, question)
        await asyncio.sleep(latency_s)
        if request.url.path in answered:
            await going.wait()
        answered.add(request.url.path)
        async with allowed:
            await allowed.wait_for(lambda: answers["given"] < answers["most"])
            answers["given"] += 1
        text = json.dumps(question)
        for word, sentence in refusals.items():
            if word in text:
                said = sentence.replace("{key}", key)
                return JSONResponse({"error": {"message": said, "type": "invalid_request_error"}}, status_code=400)
        if request.url.path.endswith("completions"):
            seed = question.get("seed")
            tries[text] += 1
            if seed in troubles and (kind := troubles[seed].of(tries[text])):
                return trouble(kind)
            turn = programs.get(seed, [program])
            answer = ANSWER.format(turn[zlib.crc32(text.encode()) % len(turn)])
            return StreamingResponse(_stream(question["model"], answer), media_type="text/event-stream")
        return Response(b"".join(stream_of(request.url.path, question)), media_type="text/event-stream")

    async def models(request: Request) -> Response:
        note(request, None)
        return JSONResponse({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})

    async def tell(request: Request) -> Response:
        seed = request.query_params.get("seed")
        if seed is None:
            return JSONResponse(seen)
        return JSONResponse([each for each in seen if str((each["question"] or {}).get("seed")) == seed])

    async def count(_: Request) -> Response:
        asked = sum(1 for each in seen if each["path"].endswith("completions"))
        return JSONResponse({"chat": asked, "answered": answers["given"]})

    async def refuse(request: Request) -> Response:
        refusals.update(await request.json())
        return Response(status_code=204)

    async def give_programs(request: Request) -> Response:
        programs.update({int(seed): given for seed, given in (await request.json()).items()})
        return Response(status_code=204)

    async def make_trouble(request: Request) -> Response:
        troubles.update({int(seed): Troubles(**given) for seed, given in (await request.json()).items()})
        return Response(status_code=204)

    async def hold(_: Request) -> Response:
        answered.clear()
        going.clear()
        return Response(status_code=204)

    async def allow(request: Request) -> Response:
        async with allowed:
            answers["most"] = (await request.json())["most"]
            allowed.notify_all()
        return Response(status_code=204)

    async def go(_: Request) -> Response:
        going.set()
        return Response(status_code=204)

    return Starlette(
        routes=[
            *(Route(f"/v1/{path}", ask, methods=["POST"]) for path in ("chat/completions", "messages", "responses")),
            Route("/v1/models", models),
            Route("/seen", tell),
            Route("/count", count),
            Route("/refuse", refuse, methods=["POST"]),
            Route("/programs", give_programs, methods=["POST"]),
            Route("/troubles", make_trouble, methods=["POST"]),
            Route("/hold", hold, methods=["POST"]),
            Route("/go", go, methods=["POST"]),
            Route("/allow", allow, methods=["POST"]),
        ]
    )


async def _stream(model: str, answer: str) -> AsyncIterator[bytes]:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}

    def event(choices: list[Any], **more: Any) -> bytes:
        return b"data: " + json.dumps(base | {"choices": choices} | more).encode() + b"\n\n"

    for start in range(0, len(answer), 8):
        delta = {"role": "assistant", "content": answer[start : start + 8]}
        yield event([{"index": 0, "delta": delta, "finish_reason": None}])
    yield event([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    yield event([], usage={"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120})
    yield b"data: [DONE]\n\n"


class CountingProvider:
    """The process, for as long as the block lasts."""

    def __init__(self, log: Path, latency_s: float = 0.3, program: str = PROGRAM, host: str = "127.0.0.1") -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://{host}:{self.port}"
        self.base_url = f"{self.url}/v1"
        self._log = log
        words = [str(self.port), str(latency_s), program, host]
        self._command = [sys.executable, "-m", "tests.faults.counting_provider", *words]
        self._client = httpx.Client(base_url=self.url, timeout=300, trust_env=False)

    def __enter__(self) -> CountingProvider:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
        wait_for(self._up, 180, "the provider listens")
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._process.terminate()
        self._process.wait(60)

    def questions(self, seed: int | None = None) -> list[dict[str, Any]]:
        """Everything it was asked (with this seed), each time it was asked."""
        return [each["question"] for each in self.seen(seed) if each["path"].endswith("completions")]

    def seen(self, seed: int | None = None) -> list[dict[str, Any]]:
        params = {} if seed is None else {"seed": str(seed)}
        found: list[dict[str, Any]] = self._client.get("/seen", params=params).json()
        return found

    def refuse(self, word: str, sentence: str) -> None:
        self._client.post("/refuse", json={word: sentence}).raise_for_status()

    def give_programs(self, seed: int, programs: Sequence[str]) -> None:
        self._client.post("/programs", json={str(seed): list(programs)}).raise_for_status()

    def make_trouble(self, seed: int, kinds: Sequence[str], times: int) -> None:
        """Each question with this seed is answered with these troubles in turn, `times` in all, then properly."""
        self._client.post("/troubles", json={str(seed): {"kinds": list(kinds), "times": times}}).raise_for_status()

    def hold(self) -> None:
        self._client.post("/hold").raise_for_status()

    def go(self) -> None:
        self._client.post("/go").raise_for_status()

    def answered(self) -> int:
        """How many questions it has answered, or begun to answer."""
        return int(self._client.get("/count").json()["answered"])

    def allow(self, most: int = sys.maxsize) -> None:
        self._client.post("/allow", json={"most": most}).raise_for_status()

    def _up(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        with suppress(httpx.HTTPError):
            return self._client.get("/count").status_code == 200
        return False


def main() -> None:
    import uvicorn

    port, latency_s, program = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    host = sys.argv[4] if len(sys.argv) > 4 else "127.0.0.1"
    uvicorn.run(app(latency_s, program), host=host, port=port, log_level="warning", backlog=4096, timeout_keep_alive=120)


if __name__ == "__main__":
    main()
