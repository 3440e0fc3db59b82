"""Follows runs: server-sent events, resumed after the last one received when the connection breaks."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from httpx_sse import ServerSentEvent

from orchestrator.cli.api.client import Client, run_path
from orchestrator.cli.errors import CliError, NotReachable, Refused

PATIENCE_S = 60.0
"""How long the service may be unreachable (a restart) before following stops."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 3.0
TERMINAL = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True)
class StreamEvent:
    type: str
    data: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


def parse(events: Iterable[ServerSentEvent]) -> Iterator[StreamEvent]:
    """Events without data, such as pings, are dropped."""
    for event in events:
        if event.data:
            yield StreamEvent(event.event, _object(event.data), event.id or None)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def follow(
    client: Client,
    path: str,
    *,
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[StreamEvent]:
    """Yields every event of the run or job at `path` exactly once, until it ends. Raises `NotReachable` if the service stays
    unreachable.
    """
    last: str | None = None
    unreachable_since: float | None = None
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            with client.stream(f"{path}/stream", last) as events:
                for event in parse(events):
                    unreachable_since, pause_s = None, FIRST_PAUSE_S
                    if event.id is not None:
                        last = event.id
                    if event.type == "end":
                        return
                    yield event
            if client.get(path)["status"] in TERMINAL:
                return
            unreachable_since = None
        except (NotReachable, Refused) as error:
            if isinstance(error, Refused) and error.status < 500:
                raise
            unreachable_since = monotonic() if unreachable_since is None else unreachable_since
            if monotonic() - unreachable_since > patience_s:
                raise
        sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


@dataclass(frozen=True)
class StreamEnd:
    """There are no more events of this run; `error` is the reason if it has not ended."""

    error: CliError | None = None


class Followers:
    """Follows several runs, one thread each; `take` returns their events in order of arrival."""

    def __init__(self, connect: Callable[[], Client], run_ids: Iterable[str]) -> None:
        self._queue: queue.Queue[tuple[str, StreamEvent | StreamEnd]] = queue.Queue()
        self._connect = connect
        for run_id in run_ids:
            threading.Thread(target=self._follow, args=(run_id,), name=f"follow {run_id}", daemon=True).start()

    def take(self, timeout_s: float) -> tuple[str, StreamEvent | StreamEnd] | None:
        try:
            return self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def _follow(self, run_id: str) -> None:
        error: CliError | None = None
        try:
            with self._connect() as client:
                for event in follow(client, run_path(run_id)):
                    self._queue.put((run_id, event))
        except CliError as problem:
            error = problem
        except Exception as problem:  # the waiting command must see it, not only this thread
            error = CliError(f"Following run {run_id} failed: {problem!r}.")
        self._queue.put((run_id, StreamEnd(error)))
