"""Follows several runs at once, one thread each."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orchestrator.cli.api.client import Client, run_path
from orchestrator.cli.errors import CliError
from orchestrator.client.steps import TERMINAL, StreamEvent

__all__ = ["TERMINAL", "Followers", "StreamEnd", "StreamEvent"]


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
                for event in client.follow(run_path(run_id)):
                    self._queue.put((run_id, event))
        except CliError as problem:
            error = problem
        except Exception as problem:  # the waiting command must see it, not only this thread
            error = CliError(f"Following run {run_id} failed: {problem!r}.")
        self._queue.put((run_id, StreamEnd(error)))
