"""A socket in front of the real engine that breaks at the k-th request and stays broken: what a dying engine looks like."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

REAL = "/var/run/docker.sock"
_REQUEST = re.compile(rb"^(GET|POST|DELETE|HEAD|PUT) /\S* HTTP/1\.1\r\n")


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def served(path: Path, handler: Handler) -> AsyncIterator[str]:
    """A server on a unix socket that leaves nothing open."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(handle, path)
    try:
        yield f"unix://{path}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


@dataclass
class CuttingProxy:
    path: Path
    cut_at: int
    answer_lost: bool
    """The request still reaches the engine; only its answer is lost."""
    requests: list[str] = field(default_factory=list)
    broken: bool = False

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        async with served(self.path, self._serve) as base_url:
            yield base_url

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.broken:
            writer.close()
            return
        engine_reader, engine_writer = await asyncio.open_unix_connection(REAL)
        answered = asyncio.Event()
        back = asyncio.create_task(self._relay(engine_reader, writer, answered))
        try:
            while text := await reader.read(65536):
                if found := _REQUEST.match(text):
                    self.requests.append(found[0].decode().split(" HTTP")[0])
                    if len(self.requests) >= self.cut_at:
                        self.broken = True
                if self.broken and not self.answer_lost:
                    return
                answered.clear()
                engine_writer.write(text)
                await engine_writer.drain()
                if self.broken:
                    await asyncio.wait_for(answered.wait(), 120)  # then the engine has done it
                    return
            engine_writer.write_eof()
            await back
        except (ConnectionError, OSError):
            pass
        finally:
            back.cancel()
            for end in (writer, engine_writer):
                end.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answered: asyncio.Event) -> None:
        with contextlib.suppress(ConnectionError, OSError):
            while text := await reader.read(65536):
                answered.set()
                if self.broken:
                    return
                writer.write(text)
                await writer.drain()
