"""A provider that streams token by token to hundreds at once and needs little processor itself: a bare protocol on uvloop.

    python -m tests.bench.token_provider PORT LATENCY_S TOKENS TOKENS_PER_S

An answer begins after LATENCY_S and then comes in TOKENS pieces, each in a write of its own; with 0 tokens it is there at
once. A question that does not ask for a stream is answered whole, after the same time.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from types import TracebackType
from typing import cast

from orchestrator.system import event_loop
from tests.faults.service import ROOT, free_ports, wait_for

BASE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "counting"}
USAGE = {"prompt_tokens": 100, "completion_tokens": 200, "total_tokens": 300}
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(choices: list[object], **more: object) -> bytes:
    return b"data: " + json.dumps(BASE | {"choices": choices} | more).encode() + b"\n\n"


TOKEN = chunk(event([{"index": 0, "delta": {"role": "assistant", "content": " word"}, "finish_reason": None}]))
END = (
    chunk(event([{"index": 0, "delta": {}, "finish_reason": "stop"}]) + event([], usage=USAGE) + b"data: [DONE]\n\n")
    + b"0\r\n\r\n"
)


class Provider(asyncio.Protocol):
    latency_s, tokens, gap_s = 1.0, 0, 0.02

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are not of this class
        self._received = bytearray()

    def data_received(self, data: bytes) -> None:
        self._received += data
        at = self._received.find(b"\r\n\r\n")
        if at < 0:
            return
        head = bytes(self._received[:at]).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0]) if b"content-length:" in head else 0
        if len(self._received) < at + 4 + length:
            return
        question = json.loads(self._received[at + 4 :] or b"{}")
        self._received.clear()
        loop = asyncio.get_running_loop()
        if question.get("stream"):
            loop.call_later(self.latency_s, self._begin)
        else:
            loop.call_later(self.latency_s + self.tokens * self.gap_s, self._whole)

    def _begin(self) -> None:
        self._transport.write(STREAM_HEAD)
        self._go_on(0, asyncio.get_running_loop().time())

    def _go_on(self, sent: int, began: float) -> None:
        if self._transport.is_closing():
            return
        if sent == self.tokens:
            self._transport.write(END if sent else TOKEN + END)
            return
        self._transport.write(TOKEN)
        loop = asyncio.get_running_loop()
        loop.call_at(began + (sent + 1) * self.gap_s, self._go_on, sent + 1, began)

    def _whole(self) -> None:
        message = {"role": "assistant", "content": " word" * max(self.tokens, 1)}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        body = json.dumps(BASE | {"object": "chat.completion", "choices": choices, "usage": USAGE}).encode()
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        )


class TokenProvider:
    """The process, for as long as the block lasts."""

    def __init__(self, latency_s: float, tokens: int, per_s: float) -> None:
        (self.port,) = free_ports(1)
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        numbers = (str(each) for each in (self.port, latency_s, tokens, per_s))
        self._command = [sys.executable, "-m", "tests.bench.token_provider", *numbers]

    def __enter__(self) -> TokenProvider:
        self._process = subprocess.Popen(self._command, cwd=ROOT, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        wait_for(self._process.stdout.readline, 30, "the provider listens")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(10)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", port, backlog=4096)
    print("up", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    Provider.latency_s, Provider.tokens, Provider.gap_s = float(sys.argv[2]), int(sys.argv[3]), 1 / float(sys.argv[4])
    event_loop.run(serve(int(sys.argv[1])))
