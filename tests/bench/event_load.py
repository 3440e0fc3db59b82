"""The load of `tests.bench.events`: a process that posts batches of events as many runners do, each over a connection of its
own, one batch at a time. Bodies are bytes made from a template and answers are only searched for their acknowledgement, so
that it takes little of the cores that it shares with the service: its own processor time is part of its report."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import uvloop

BATCH = 4
_ITEM = {
    "benchmark": "sample",
    "problem_id": "p%d",
    "sample_index": 0,
    "outcome": "wrong_answer",
    "answer": "x = 1\n" * 300,
    "code": "x = 1",
}
_EVENT = json.dumps({"type": "progress", "seq": "SEQ", "item": _ITEM}).replace('"SEQ"', "%d").encode()
_HEAD = (
    b"POST /runner/runs/%s/events HTTP/1.1\r\nhost: %s\r\nauthorization: Bearer %s\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n"
)


@dataclass
class LoadReport:
    """What the process saw: acknowledged events, seconds on the clock and of the processor, and the wait for each answer."""

    events: int = 0
    took_s: float = 0.0
    cpu_s: float = 0.0
    waits: list[float] = field(default_factory=list)


class _Runner(asyncio.Protocol):
    """Sends its next batch as soon as the last one is acknowledged; `done` then has the number of its events."""

    def __init__(self, host: bytes, run_id: str, token: str, until: float, waits: list[float]) -> None:
        self._host, self._run_id, self._token = host, run_id.encode(), token.encode()
        self._until = until
        self._waits = waits
        self._seq = 0
        self._answer = b""
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are not of this class
        self._post()

    def _post(self) -> None:
        first = self._seq + 1
        self._seq += BATCH
        events = b",".join([_EVENT % (number, number) for number in range(first, first + BATCH)])
        body = b'{"attempt":1,"events":[%b]}' % events
        head = _HEAD % (self._run_id, self._host, self._token, len(body))
        self._began = time.monotonic()
        self._transport.write(head + body)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if not self._answer.endswith(b"}"):
            return
        now = time.monotonic()
        self._waits.append(now - self._began)
        if b'"ack_seq":%d,' % self._seq not in self._answer:
            self.done.set_exception(AssertionError(self._answer.decode()))
            self._transport.close()
            return
        self._answer = b""
        if now < self._until:
            self._post()
        else:
            self.done.set_result(self._seq)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the service closed the connection"))


def load(url: str, keys: list[tuple[str, str]], seconds: float) -> LoadReport:
    """Post for that long, for these runs with their tokens."""

    async def drive() -> LoadReport:
        address = urlsplit(url)
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        cpu = time.process_time()
        report = LoadReport()
        runners = []
        for run_id, token in keys:
            runner = _Runner(address.netloc.encode(), run_id, token, began + seconds, report.waits)
            await loop.create_connection(lambda runner=runner: runner, address.hostname, address.port)  # type: ignore[misc]
            runners.append(runner)
        report.events = sum(await asyncio.gather(*(runner.done for runner in runners)))
        report.took_s = time.monotonic() - began
        report.cpu_s = time.process_time() - cpu
        return report

    return uvloop.run(drive())
