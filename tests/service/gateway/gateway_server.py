"""A real server for the gateway, so that the real SDKs can be pointed at it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import uvicorn


class QuietServer(uvicorn.Server):
    """A server that leaves the signals of the test process alone and stops at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.stopping.wait()


@contextlib.asynccontextmanager
async def serving(app: Any, *, certificate: Path | None = None) -> AsyncIterator[str]:
    """Serve an ASGI app on a free port; yields its address. `certificate`: where that of localhost is."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        log_config=None,
        lifespan="off",
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate and certificate / "server.pem",
        ssl_keyfile=certificate and certificate / "server.key",
    )
    server = QuietServer(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        place = "http://127.0.0.1" if certificate is None else "https://localhost"
        yield f"{place}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        server.stopping.set()
        await task
        listener.close()
