"""What a provider may do instead of answering: refuse, fail, talk nonsense, break off, talk for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from starlette.responses import JSONResponse, Response, StreamingResponse

TOO_MUCH_MIB = 100
KINDS = ("429", "429 later", "500", "529", "reset", "garbage", "garbage events", "cut", "100 MB", "silence")
SILENCE_S = 3600


def trouble(kind: str) -> Response:
    match kind:
        case "429":
            return _error(429, "rate_limit_error", "Too many requests.")
        case "429 later":
            return _error(429, "rate_limit_error", "Too many requests.", {"retry-after": "2"})
        case "500":
            return _error(500, "server_error", "The server had an error.")
        case "529":
            return _error(529, "overloaded_error", "Overloaded.")
        case "reset":
            return StreamingResponse(_reset(), media_type="text/event-stream")
        case "garbage":
            return Response(b"<html>\xff not json", media_type="application/json")
        case "garbage events":
            return Response(b"data: {not json\n\n", media_type="text/event-stream")
        case "cut":
            return StreamingResponse(_cut(), media_type="text/event-stream")
        case "100 MB":
            return StreamingResponse(_flood(), media_type="text/event-stream")
        case "silence":
            return StreamingResponse(_silence(), media_type="text/event-stream")
    raise ValueError(kind)


def _error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"type": kind, "message": message}}, status_code=status, headers=headers)


def _piece(text: str) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    piece = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "counting", "choices": [choice]}
    return b"data: " + json.dumps(piece).encode() + b"\n\n"


async def _reset() -> AsyncIterator[bytes]:
    yield b""
    raise ConnectionResetError  # the server hangs up before the first event


async def _cut() -> AsyncIterator[bytes]:
    yield _piece("Half of an ")
    raise ConnectionResetError


async def _flood() -> AsyncIterator[bytes]:
    piece = _piece("x" * 65536)
    for _ in range(TOO_MUCH_MIB * 16):
        yield piece


async def _silence() -> AsyncIterator[bytes]:
    yield _piece("Wait for it")
    await asyncio.sleep(SILENCE_S)
