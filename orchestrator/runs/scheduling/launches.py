"""Launches in flight in this process, by container name. Nothing else may touch these containers meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

PATIENCE_S = 10.0
"""A launch that pulls no image has succeeded or failed by then."""


class LaunchesInFlight:
    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._long: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def begin(self, name: str, work: Coroutine[Any, Any, None], *, long: bool = False) -> None:
        """`long` marks a launch that may have to pull an image first; only such launches can be given up."""
        task = self._tasks[name] = asyncio.create_task(work)
        if long:
            self._long.add(name)
        task.add_done_callback(lambda _: self._ended(name))

    async def give_up(self, name: str) -> bool:
        """Cancel a long launch; False for a short one, which the caller should wait for. A container may remain."""
        if name not in self._long:
            return False
        task = self._tasks[name]
        task.cancel()
        await asyncio.wait({task})
        return True

    async def ended(self) -> None:
        """Wait for all launches; re-raises the exception of one that failed."""
        for result in await asyncio.gather(*self._tasks.values(), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def close(self) -> None:
        """Wait for the launches, then cancel the rest. The rows record what was begun, so nothing is lost."""
        tasks = set(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE_S)
        for task in tasks:
            task.cancel()

    def _ended(self, name: str) -> None:
        self._tasks.pop(name, None)
        self._long.discard(name)
