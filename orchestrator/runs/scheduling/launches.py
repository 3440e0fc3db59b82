"""Launches under way in this process, by the container's name: what nobody else may touch meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

PATIENCE_S = 10.0
"""A launch that asks for nothing but a container has ended by then, one way or the other."""


class LaunchesInFlight:
    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._long: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def begin(self, name: str, work: Coroutine[Any, Any, None], *, long: bool = False) -> None:
        """`long`: it may have to fetch an image first, and can be given up."""
        task = self._tasks[name] = asyncio.create_task(work)
        if long:
            self._long.add(name)
        task.add_done_callback(lambda _: self._ended(name))

    async def give_up(self, name: str) -> bool:
        """End a long one now. False: it is a short one, and should be waited for. What it made may still be there."""
        if name not in self._long:
            return False
        task = self._tasks[name]
        task.cancel()
        await asyncio.wait({task})
        return True

    async def ended(self) -> None:
        """Wait for all; what one of them raised is raised."""
        for result in await asyncio.gather(*self._tasks.values(), return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def close(self) -> None:
        """Let them end; rows say what was begun, so nothing is lost if they do not."""
        tasks = set(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE_S)
        for task in tasks:
            task.cancel()

    def _ended(self, name: str) -> None:
        self._tasks.pop(name, None)
        self._long.discard(name)
