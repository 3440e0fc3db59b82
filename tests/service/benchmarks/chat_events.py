"""The stream of a chat completion, as a provider of the tests sends it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any


async def chat_events(model: str, text: str, finish: str = "stop", *, tokens: tuple[int, int]) -> AsyncIterator[bytes]:
    """`tokens` are those of the prompt and of the answer."""

    def event(delta: dict[str, Any], reason: str | None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, **more}
        return f"data: {json.dumps(chunk)}\n\n".encode()

    yield event({"role": "assistant", "content": text}, None)
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    yield event({}, finish, usage=usage)
    yield b"data: [DONE]\n\n"
