"""Live streams as server-sent events. Ids are event numbers of the database; `Last-Event-ID` (or `?after=`) replays."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import Path

from orchestrator.http.context import Context, Services
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.http.streams import END, After, EventStream, LastEventId, stream_of, stream_start
from orchestrator.runs.lifecycle import TERMINAL
from orchestrator.runs.live.feed import LoggedEvent, StreamEvent

router = Router(tags=["live"])

PING_S = 15.0


@router.get("/api/events", policy=Policy(READ, streams=True), response_class=EventStream)
async def all_events(context: Context, last_event_id: LastEventId = None, after: After = None) -> EventStream:
    """All events, live."""
    start = stream_start(last_event_id, after)
    return stream_of(_written(_events(context, start, None)))


@router.get("/api/container-runs/{run_id}/stream", policy=Policy(READ, streams=True), response_class=EventStream)
async def run_events(
    run_id: Annotated[str, Path(min_length=1, max_length=60)],
    context: Context,
    last_event_id: LastEventId = None,
    after: After = None,
) -> EventStream:
    """The events of one run from its beginning (or after the given number); the stream closes when the run ends."""
    run = await context.runs.get(run_id)
    start = stream_start(last_event_id, after) or 0
    return stream_of(_written(run_lines(context, start, run_id, over=run.status in TERMINAL)))


def run_lines(context: Services, after: int, run_id: str, *, over: bool) -> AsyncGenerator[list[StreamEvent] | str, None]:
    """The events of one run until its end, in batches, interleaved with the control lines that every stream has."""
    return _past(context, after, run_id) if over else _events(context, after, run_id)


async def _written(events: AsyncGenerator[list[StreamEvent] | str, None]) -> AsyncIterator[str]:
    async with aclosing(events):
        async for batch in events:
            yield batch if isinstance(batch, str) else "".join(line.text for line in batch)


async def _past(context: Services, after: int, run_id: str) -> AsyncGenerator[list[StreamEvent] | str, None]:
    """The stored events of an ended run. A client that reconnects after the last event gets the end marker again."""
    number: int | None = after
    while number is not None:
        past = await context.live.page(number, run_id)
        yield past
        number = past[-1].number if past else None
    yield END


async def _events(context: Services, after: int | None, run_id: str | None) -> AsyncGenerator[list[StreamEvent] | str, None]:
    yield "retry: 1000\n\n"
    async with aclosing(context.live.follow(after=after, run_id=run_id, quiet_s=PING_S)) as batches:
        async for batch in batches:
            yield batch or ": ping\n\n"
            if run_id is not None and any(_ends(line.event) for line in batch):
                yield END
                return


def _ends(event: LoggedEvent) -> bool:
    return event.type == "transition" and event.data.get("status") in TERMINAL
