"""Pulls missing images of users' commands from their registry, once for everybody who waits."""

from __future__ import annotations

import asyncio
import weakref

import structlog

from orchestrator.engines.bounded_threads import BoundedThreads, Deadline
from orchestrator.engines.docker.api import DockerApi
from orchestrator.engines.docker.guest_images import missing
from orchestrator.engines.engine import EngineError, EngineUnreachable, ImageMissing

log = structlog.get_logger()

LOOK_LIMIT_S = 9.5
PULL_LIMIT_S = 600.0
AT_ONCE = 8


class GuestPulls:
    def __init__(self, api: DockerApi, threads: BoundedThreads) -> None:
        self._api, self._threads = api, threads
        self._pulling = BoundedThreads(AT_ONCE, "pull")
        """Separate threads: a pull that was given up may hang on a silent registry for a while, and must not block other
        calls."""
        self._under_way: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def have(self, image: str) -> None:
        """Returns when the image is there; raises `ImageMissing` with the reason if it cannot be pulled."""
        lock = self._under_way.setdefault(image, asyncio.Lock())  # exists while somebody holds or awaits it
        async with lock:
            if await self._is_there(image):
                return
            log.info("image is pulled", action="image_pull", image=image)
            try:
                await self._pulling.call(lambda deadline: self._pull(image, deadline), limit_s=PULL_LIMIT_S)
            except TimeoutError as error:
                raise ImageMissing(f"{missing(image)} It was not pulled within {PULL_LIMIT_S:g} s.") from error
            except EngineUnreachable:
                raise
            except EngineError as error:
                raise ImageMissing(f"{missing(image)} It could not be pulled: {error}") from error

    def close(self) -> None:
        self._pulling.close()

    async def _is_there(self, image: str) -> bool:
        try:
            return await self._threads.call(lambda _: self._api.find_image(image), limit_s=LOOK_LIMIT_S) is not None
        except TimeoutError as error:
            raise EngineUnreachable(f"Docker at {self._api.address} did not answer within {LOOK_LIMIT_S:g} s.") from error

    def _pull(self, image: str, deadline: Deadline) -> None:
        self._api.pull(image, deadline.check)
