"""Archives in S3: put, fetched and deleted by presigned addresses. The service holds the key; nobody else needs one."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from orchestrator.archives.presigned import Bucket, presigned
from orchestrator.clock import Clock

PIECE = 1 << 20
EXPIRES_S = 3600
TIMEOUT = httpx.Timeout(60, connect=10)
_MESSAGE = re.compile(r"<Message>(.*?)</Message>", re.DOTALL)


class StoreError(Exception):
    """The object store did not do what it was asked; try again later."""


class ObjectStore:
    def __init__(self, bucket: Bucket, clock: Clock, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._bucket, self._clock = bucket, clock
        self._client = httpx.AsyncClient(timeout=TIMEOUT, transport=transport, follow_redirects=False)

    async def put(self, run_id: str, path: Path) -> None:
        """The whole file, streamed. It is there whole or not at all."""
        size = await asyncio.to_thread(os.path.getsize, path)
        headers = {"content-length": str(size), "content-type": "application/gzip"}
        await self._call("PUT", run_id, path.name, content=_pieces(path), headers=headers)

    async def delete(self, run_id: str, filename: str) -> None:
        """What is not there is gone already."""
        await self._call("DELETE", run_id, filename, gone_is_fine=True)

    def address(self, run_id: str, filename: str) -> str:
        """Where it can be fetched for an hour."""
        key = self._bucket.key(run_id, filename)
        return presigned(self._bucket, "GET", key, now=self._clock.now(), expires_s=EXPIRES_S)

    async def close(self) -> None:
        await self._client.aclose()

    async def _call(
        self,
        method: str,
        run_id: str,
        filename: str,
        *,
        content: AsyncIterator[bytes] | None = None,
        headers: dict[str, str] | None = None,
        gone_is_fine: bool = False,
    ) -> None:
        key = self._bucket.key(run_id, filename)
        url = presigned(self._bucket, method, key, now=self._clock.now(), expires_s=EXPIRES_S)
        try:
            answer = await self._client.request(method, url, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise StoreError(f"the object store does not answer ({type(error).__name__}: {error})".rstrip(": ")) from error
        if answer.is_success or (gone_is_fine and answer.status_code == httpx.codes.NOT_FOUND):
            return
        said = _MESSAGE.search(answer.text[:4000])
        raise StoreError(f"the object store answered {answer.status_code}{f': {said[1][:300]}' if said else ''}")


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
