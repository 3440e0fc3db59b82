"""A web server that takes webhooks and answers as a test says."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True)
class Taken:
    headers: dict[str, str]
    body: bytes


class Receiver:
    def __init__(self) -> None:
        self.taken: list[Taken] = []
        self.status = 200
        self.url = ""

    async def __aenter__(self) -> Receiver:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/hook"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.taken.append(Taken(headers, body))
            extra = "location: http://127.0.0.1:1/\r\n" if self.status == 302 else ""
            answer = f"HTTP/1.1 {self.status} X\r\n{extra}content-length: 0\r\nconnection: close\r\n\r\n"
            writer.write(answer.encode())
            await writer.drain()
        finally:
            writer.close()
