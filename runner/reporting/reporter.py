"""Reports a running attempt to the orchestrator: consecutively numbered events, each sent until acknowledged.

One task sends, another adds heartbeats. Encoded events stay in a backlog until they are acknowledged. An outage of hours
loses nothing, because work pauses when the backlog is full. The reporter gives up only if the orchestrator is unreachable
for longer than `patience_s`. This module does not know what an item is.
"""

import asyncio
import contextlib
import math
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import httpx
from pydantic import ValidationError

from runner.contract.evals import EvalWrittenEvent, JobProgressEvent, JobStage, Judgement, JudgementsEvent, Round
from runner.contract.events import (
    CompleteEvent,
    DeferredEvent,
    Desired,
    EventAck,
    ExpectedEvent,
    FailedEvent,
    FailureReason,
    HeartbeatEvent,
    ItemResult,
    LogEvent,
    ProgressEvent,
    RunnerEvent,
    Stage,
    StageEvent,
)
from runner.log import Log
from runner.process.boot import boot_event, seconds
from runner.reporting.truncation import clean, trimmed
from runner.reporting.usage_samples import UsageLog

MAX_BATCH_BYTES = 4 << 20
MAX_BATCH_EVENTS = 500
MAX_BACKLOG_BYTES = 32 << 20
MAX_PAUSE_S = 3.0
OVER = frozenset({401, 403, 409, 410, 422})


class Stop(StrEnum):
    """Why the work must stop at once."""

    SUPERSEDED = "superseded"  #: another attempt has taken over, or the token is no longer valid
    CANCELLED = "cancelled"  #: the orchestrator cancelled the run
    LOST = "lost"  #: the orchestrator has lost events that it had acknowledged
    ABANDONED = "abandoned"  #: the orchestrator did not answer for too long


@dataclass(frozen=True)
class _Pending:
    seq: int
    kind: str
    body: bytes


class Reporter:
    """Use with `async with`; call `stage`, `log` and `item`, and `complete`, `deferred` or `failed` last."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        *,
        attempt: int,
        heartbeat_s: float,
        batch_s: float,
        log: Log,
        boot_facts: dict[str, Any] | None = None,
        boot_acked: bool = False,
        max_backlog_bytes: int = MAX_BACKLOG_BYTES,
        usage: UsageLog,
        patience_s: float = math.inf,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._url, self._attempt = client, url, attempt
        self._heartbeat_s, self._batch_s, self._log = heartbeat_s, batch_s, log
        self._max_backlog_bytes = max_backlog_bytes
        self._usage = usage
        self._patience_s, self._now = patience_s, now
        self._max_batch_bytes = MAX_BATCH_BYTES
        self._backlog: deque[_Pending] = deque()
        self._bytes = 0
        self._seq = 1
        self._acked = 1
        self._last = False
        self.reachable = True
        if not boot_acked:
            self._acked = 0
            self._put(StageEvent.model_validate(boot_event(boot_facts or {})))
        self._news = asyncio.Event()
        self._hurry = asyncio.Event()
        self._beat_soon = asyncio.Event()
        self._moved = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.stop: asyncio.Future[Stop] = asyncio.get_running_loop().create_future()
        self.waiting_for: Callable[[], str | None] = lambda: None
        """Returns what the run waits for, for heartbeats."""

    async def __aenter__(self) -> Self:
        self._news.set()
        self._tasks = [asyncio.create_task(job) for job in (self._send(), self._beat(), self._watch_usage())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stage(self, stage: Stage, **facts: Any) -> None:
        self._add(StageEvent(seq=self._next(), stage=stage, facts=facts))

    def log(self, level: str, message: str) -> None:
        self._add(LogEvent.model_validate({"seq": self._next(), "level": level, "message": clean(message[:4000])}))

    async def item(self, item: ItemResult) -> None:
        """Reports an item; waits while the backlog is full, so that an outage pauses the work."""
        await self._room()
        self._add(ProgressEvent(seq=self._next(), item=item))

    def expected(self, total: int) -> None:
        """Reports how many items there will be in all."""
        self._add(ExpectedEvent(seq=self._next(), total=total))

    def job(self, stage: JobStage, percent: int, **facts: Any) -> None:
        self._add(JobProgressEvent(seq=self._next(), stage=stage, percent=percent, **facts))

    async def judgements(self, judgements: list[Judgement]) -> None:
        """Reports verdicts of an eval; waits as `item` does."""
        await self._room()
        self._add(JudgementsEvent(seq=self._next(), judgements=judgements))

    async def eval_written(self, code: str, judgements: list[Judgement], rounds: list[Round]) -> None:
        await self._room()
        self._add(EvalWrittenEvent(seq=self._next(), code=code, judgements=judgements, rounds=rounds))

    async def _room(self) -> None:
        while self._bytes > self._max_backlog_bytes:
            await self._moved.wait()

    async def complete(self) -> None:
        """Reports the end; returns when everything is acknowledged."""
        self._last = True
        self._usage.take()
        self._add(CompleteEvent(seq=self._next()))
        await self.flush()

    async def deferred(self, calls: int) -> None:
        """Reports that the rest waits for a batch; returns when everything is acknowledged."""
        self._last = True
        self._usage.take()
        self._add(DeferredEvent(seq=self._next(), calls=calls))
        await self.flush()

    async def failed(self, reason: FailureReason, message: str, code: str | None = None) -> None:
        self._last = True
        self._usage.take()
        self._add(FailedEvent(seq=self._next(), reason=reason, message=clean(message[:4000]), code=code))
        await self.flush()

    async def flush(self) -> None:
        """Returns when everything is acknowledged."""
        self._hurry.set()
        while self._backlog:
            await self._moved.wait()
        self._hurry.clear()

    def beat_soon(self) -> None:
        """Sends a heartbeat early, because its content has changed."""
        self._beat_soon.set()

    def _next(self) -> int:
        return self._seq + 1

    def _put(self, event: RunnerEvent) -> None:
        body = event.model_dump_json(exclude_none=True).encode()
        self._backlog.append(_Pending(event.seq, event.type, body))
        self._bytes += len(body)
        self._seq = event.seq

    def _add(self, event: RunnerEvent) -> None:
        self._put(event)
        self._news.set()

    async def _beat(self) -> None:
        """Adds a heartbeat at least every `heartbeat_s`, never two to the backlog; early ones keep a second's distance."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._heartbeat_s):
                    await self._beat_soon.wait()
                    await asyncio.sleep(min(1.0, self._heartbeat_s))
            self._beat_soon.clear()
            if not self._last and not any(pending.kind == "heartbeat" for pending in self._backlog):
                self._add(HeartbeatEvent(seq=self._next(), waiting_for=self.waiting_for()))

    async def _watch_usage(self) -> None:
        """Takes usage samples. They are sent with the next batch and never cause one."""
        while True:
            self._usage.take()
            await asyncio.sleep(self._usage.step_s)

    async def _send(self) -> None:
        failures, heard = 0, self._now()
        while not self.stop.done():
            if not self._backlog:
                self._news.clear()
                await self._news.wait()
                heard = self._now()  # there was nothing to send, so the silence was ours
            began = time.monotonic()
            batch = self._batch()
            try:
                problem, retry_after_s = await self._post(batch)
            except Exception as error:  # logged and retried: if the reporter died, so would the run
                problem, retry_after_s = f"{type(error).__name__}: {error}", None
            self.reachable = problem is None
            if problem is None:
                failures, heard = 0, self._now()
                await self._pause(self._batch_s - (time.monotonic() - began))
                continue
            if self._now() - heard > self._patience_s:
                self._end(
                    Stop.ABANDONED, f"the orchestrator has not answered for {self._patience_s:.0f} s; last error: {problem}"
                )
            if failures & (failures + 1) == 0:
                self._log("report.again", trouble=problem, tries=failures + 1, backlog=len(self._backlog))
            pause = min(0.1 * 2 ** min(failures, 10), MAX_PAUSE_S)
            failures += 1
            await self._pause(max(pause, min(retry_after_s or 0.0, MAX_PAUSE_S)) * random.uniform(0.7, 1.3), floor_s=0.1)

    async def _pause(self, pause_s: float, floor_s: float = 0.0) -> None:
        """Sleeps; `_hurry` shortens the sleep to `floor_s`."""
        await asyncio.sleep(min(floor_s, max(pause_s, 0.0)))
        if pause_s > floor_s:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s - floor_s):
                    await self._hurry.wait()

    def _batch(self) -> list[_Pending]:
        batch: list[_Pending] = []
        size = 0
        for pending in self._backlog:
            size += len(pending.body) + 1
            if batch and (size > self._max_batch_bytes or len(batch) >= MAX_BATCH_EVENTS):
                break
            batch.append(pending)
        return batch

    async def _post(self, batch: list[_Pending]) -> tuple[str | None, float | None]:
        """Sends a batch; returns what went wrong (None if nothing) and the seconds of Retry-After."""
        samples = self._usage.waiting()
        usage = b",".join(sample.model_dump_json(exclude_none=True).encode() for sample in samples)
        events = b",".join(pending.body for pending in batch)
        body = b'{"attempt":%d,"usage":[%b],"events":[%b]}' % (self._attempt, usage, events)
        try:
            answer = await self._client.post(self._url, content=body, headers={"Content-Type": "application/json"})
        except httpx.HTTPError as error:
            return f"{type(error).__name__}: {error}", None
        if answer.is_success:
            self._usage.sent(samples)
            try:
                return self._acknowledge(EventAck.model_validate_json(answer.content)), None
            except ValidationError:
                return "the acknowledgement is invalid", None
        if answer.status_code in OVER:
            self._end(Stop.SUPERSEDED, f"status {answer.status_code}: {answer.text[:300]}")
            return None, None
        if answer.status_code == 413:
            self._usage.sent(samples)
            self._shrink(batch, sum(len(pending.body) for pending in batch))
        return f"status {answer.status_code}: {answer.text[:300]}", seconds(answer.headers.get("Retry-After"))

    def _acknowledge(self, ack: EventAck) -> str | None:
        if ack.desired is Desired.CANCEL:
            self._end(Stop.CANCELLED, "the orchestrator cancelled the run")
        if ack.ack_seq < self._acked:
            self._end(Stop.LOST, f"it acknowledged {self._acked} events before, now only {ack.ack_seq}")
            return None
        moved = ack.ack_seq > self._acked
        self._acked = ack.ack_seq
        while self._backlog and self._backlog[0].seq <= ack.ack_seq:
            self._bytes -= len(self._backlog.popleft().body)
        self._moved.set()
        self._moved = asyncio.Event()
        return None if moved else "the orchestrator accepted none of the events"

    def _shrink(self, batch: list[_Pending], size: int) -> None:
        """Handles "too large": makes batches smaller; a single event has its texts cut, never its verdict."""
        if len(batch) > 1:
            self._max_batch_bytes = max(size // 2, 1)
            return
        pending = batch[0]
        body = trimmed(pending.kind, pending.body)
        self._log("report.trimmed", seq=pending.seq, from_bytes=len(pending.body), to_bytes=len(body))
        self._bytes += len(body) - len(pending.body)
        self._backlog[0] = _Pending(pending.seq, pending.kind, body)

    def _end(self, stop: Stop, why: str) -> None:
        if not self.stop.done():
            self._log("report.stop", stop=stop.value, why=why)
            self.stop.set_result(stop)
