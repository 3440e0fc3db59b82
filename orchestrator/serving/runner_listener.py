"""A second listener that serves only the runners' API, on the one address that they can reach.

With Docker and the orchestrator on the host, that is the runner network's own address, which exists only once the engine has
answered; so the listener starts when it can, and no run is dispatched before.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from functools import partial

import structlog
import uvicorn
from starlette.types import ASGIApp

from orchestrator.serving.timeouts import HttpTimeouts
from orchestrator.startup import RUNNER_LISTENER_FAILED, RUNNER_LISTENER_OPEN

log = structlog.get_logger()

DATE_S = 1.0
LOOK_S = 0.005
"""uvicorn has no event for a connection that was closed."""


class QuietServer(uvicorn.Server):
    """A server inside our own process: signals are handled by the main one. uvicorn polls ten times a second whether it
    should exit, and waits as long for closed connections. This server is woken, so it costs nothing while it is idle and
    stops at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        self._exit = asyncio.Event()
        super().__init__(config)

    @property
    def should_exit(self) -> bool:
        return self._exit.is_set()

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        (self._exit.set if value else self._exit.clear)()

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # writes the date of the responses' headers
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DATE_S):
                    await self._exit.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in self.servers:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                await self._until_idle()
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()
        await self.lifespan.shutdown()

    async def _until_idle(self) -> None:
        while (self.server_state.connections or self.server_state.tasks) and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)


def server_config(app: ASGIApp, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=HttpTimeouts,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=3,
        lifespan="off",
        backlog=1024,
    )


class RunnerListener:
    """`shared` makes a socket at an address that other processes listen at as well; `opened` is told where, and starts
    them."""

    def __init__(
        self,
        *,
        port: int,
        listen: Callable[[], Awaitable[str]],
        public_host: str | None,
        shared: Callable[[str, int], socket.socket] | None = None,
        opened: Callable[[str, int, ASGIApp], Awaitable[None]] | None = None,
    ) -> None:
        self._shared = shared
        self._opened = opened
        self._port = port
        self._listen = listen
        self._public_host = public_host
        self._server: QuietServer | None = None
        self._task: asyncio.Task[None] | None = None
        self._address: str | None = None
        self._closing: list[asyncio.Task[None]] = []
        self.app: ASGIApp | None = None
        self.error: str | None = None

    @property
    def is_open(self) -> bool:
        return self._server is not None and self._server.started

    @property
    def url(self) -> str:
        """The address given to runners."""
        host = self._public_host or self._address or "127.0.0.1"
        return f"http://{host}:{self._port}"

    async def ensure(self) -> None:
        """Open the listener if it is closed, and move it if the runner network's address has changed. Raises the engine's
        errors, and stores a failure to listen in `error`."""
        if self.app is None:
            return
        address = await self._listen()
        if self.is_open and address == self._address:
            return
        before = (self._server, self._task) if self._server is not None and self._task is not None else None
        self._address = address
        server = QuietServer(server_config(self.app, address, self._port))
        shared = None if self._shared is None else partial(self._shared, address, self._port)
        task = asyncio.create_task(_serve(server, shared))
        try:
            while not server.started and not task.done():  # noqa: ASYNC110 -- uvicorn has no event for it
                await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            self._closing.append(asyncio.create_task(_stop(server, task)))
            raise
        self._server = self._task = None  # a listener on an address that runners no longer have counts as closed
        if before is not None:
            self._closing.append(asyncio.create_task(_stop(*before)))
        if task.done():
            self.error = f"cannot listen for runners on {address}:{self._port}: {task.exception() or 'the port is in use'}"
            log.error("runner listener failed", action=RUNNER_LISTENER_FAILED, error=self.error)
            return
        self._server, self._task, self.error = server, task, None
        if self._port == 0:
            self._port = server.servers[0].sockets[0].getsockname()[1]
        log.info("runner listener open", action=RUNNER_LISTENER_OPEN, address=address, port=self._port)
        if self._opened is not None:
            await self._opened(address, self._port, self.app)

    async def close(self) -> None:
        if self._server is not None and self._task is not None:
            await _stop(self._server, self._task)
        await asyncio.gather(*self._closing, return_exceptions=True)


async def _stop(server: QuietServer, task: asyncio.Task[None]) -> None:
    server.should_exit = True
    with contextlib.suppress(asyncio.TimeoutError, asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    for listening in getattr(server, "servers", []):  # uvicorn leaves them open if it is told to exit while it starts
        listening.close()


async def _serve(server: QuietServer, shared: Callable[[], socket.socket] | None) -> None:
    try:
        await server.serve(None if shared is None else [shared()])
    except SystemExit as error:  # raised by uvicorn if the port is taken
        raise OSError("the address is in use or cannot be bound") from error
