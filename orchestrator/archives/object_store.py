"""Archives in S3: put, fetched and deleted by presigned addresses. The service holds the key; nobody else needs one.

What is larger than a part goes in parts, so that a stream of unknown length needs neither a disk nor more memory than one
of them. It is there whole or not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from dataclasses import dataclass
from html import unescape

import httpx

from orchestrator.archives.presigned import Bucket, presigned
from orchestrator.system.clock import Clock

MIB = 1 << 20
PART_BYTES = 8 * MIB
PARTS_PER_SIZE = 1000
"""After so many parts they become larger: S3 takes 10,000 of them, which is then 440 GiB."""
PART_TRIES = 4
EXPIRES_S = 3600
TIMEOUT = httpx.Timeout(60, connect=10)
GZIP = {"content-type": "application/gzip"}
BATCHES = "batches"


class StoreError(Exception):
    """The object store did not do what it was asked; try again later."""


@dataclass(frozen=True)
class Stored:
    key: str
    size_bytes: int


def batch_folder(batch_id: str) -> str:
    return f"{BATCHES}/{batch_id}"


class ObjectStore:
    def __init__(
        self,
        bucket: Bucket,
        clock: Clock,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self._bucket, self._clock, self._part_bytes = bucket, clock, part_bytes
        self._client = httpx.AsyncClient(timeout=TIMEOUT, transport=transport, follow_redirects=False)

    @property
    def place(self) -> str:
        """For people."""
        return f"s3://{self._bucket.name}/{self._bucket.prefix}"

    async def put(self, folder: str, filename: str, pieces: AsyncIterable[bytes]) -> None:
        """All that comes, as one object; one of the same name is replaced."""
        key = self._bucket.key(folder, filename)
        async with contextlib.aclosing(_parts(pieces, self._part_bytes)) as parts:
            first = await anext(parts, b"")
            second = await anext(parts, None)
            if second is None:
                await self._call("PUT", key, content=first, headers=GZIP)
            else:
                await self._put_in_parts(key, _joined(first, second, parts))

    async def delete(self, folder: str, filename: str) -> None:
        """What is not there is gone already."""
        await self._call("DELETE", self._bucket.key(folder, filename), gone_is_fine=True)

    async def delete_all(self) -> list[Stored]:
        """Everything under our prefix, uploads that were never finished included; what there was."""
        await self._abort_unfinished(self._bucket.prefix)
        found = [each async for each in self.each()]
        for each in found:
            await self._call("DELETE", each.key, gone_is_fine=True)
        return found

    async def each(self) -> AsyncIterator[Stored]:
        """What is under our prefix."""
        query = {"list-type": "2", "prefix": self._bucket.prefix}
        while True:
            answer = (await self._call("GET", "", query)).text
            for entry in _all(answer, "Contents"):
                yield Stored(_only(entry, "Key"), int(_only(entry, "Size")))
            if not _all(answer, "NextContinuationToken"):
                return
            query = {**query, "continuation-token": _only(answer, "NextContinuationToken")}

    def address(self, folder: str, filename: str) -> str:
        """Where it can be fetched for an hour."""
        return self._signed("GET", self._bucket.key(folder, filename))

    async def close(self) -> None:
        await self._client.aclose()

    async def _put_in_parts(self, key: str, parts: AsyncIterator[bytes]) -> None:
        with contextlib.suppress(StoreError):  # our key may not be allowed to list
            await self._abort_unfinished(key)  # of an orchestrator that was killed
        began = await self._call("POST", key, {"uploads": ""}, headers=GZIP)
        upload = {"uploadId": _only(began.text, "UploadId")}
        tags: list[str] = []
        try:
            async for part in parts:
                tags.append(await self._part(key, upload, len(tags) + 1, part))
            await self._complete(key, upload, tags)
        except BaseException:
            await self._abort(key, upload)
            raise

    async def _part(self, key: str, upload: dict[str, str], number: int, part: bytes) -> str:
        """Sent again when it fails: what it was made from cannot be read again."""
        for again in range(PART_TRIES):
            try:
                answer = await self._call("PUT", key, {**upload, "partNumber": str(number)}, content=part)
                return str(answer.headers["etag"])
            except StoreError:
                if again == PART_TRIES - 1:
                    raise
                await asyncio.sleep(0.25 * 4**again)
        raise AssertionError("unreachable")

    async def _complete(self, key: str, upload: dict[str, str], tags: list[str]) -> None:
        rows = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in enumerate(tags, 1)
        )
        body = f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()
        answer = await self._call("POST", key, upload, content=body)
        if "<Error>" in answer.text:  # S3 answers 200 before it knows
            raise StoreError(f"the object store could not put the parts together{_said(answer)}")

    async def _abort(self, key: str, upload: dict[str, str]) -> None:
        """As far as possible; the next upload of this name looks again."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(10):
                await self._call("DELETE", key, upload, gone_is_fine=True)

    async def _abort_unfinished(self, prefix: str) -> None:
        answer = (await self._call("GET", "", {"uploads": "", "prefix": prefix})).text
        for entry in _all(answer, "Upload"):
            key, upload = _only(entry, "Key"), {"uploadId": _only(entry, "UploadId")}
            await self._call("DELETE", key, upload, gone_is_fine=True)

    def _signed(self, method: str, key: str, query: dict[str, str] | None = None) -> str:
        return presigned(self._bucket, method, key, now=self._clock.now(), expires_s=EXPIRES_S, query=query)

    async def _call(
        self,
        method: str,
        key: str,
        query: dict[str, str] | None = None,
        *,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
        gone_is_fine: bool = False,
    ) -> httpx.Response:
        try:
            url = self._signed(method, key, query)
            answer = await self._client.request(method, url, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise StoreError(f"the object store does not answer ({type(error).__name__}: {error})".rstrip(": ")) from error
        if answer.is_success or (gone_is_fine and answer.status_code == httpx.codes.NOT_FOUND):
            return answer
        raise StoreError(f"the object store answered {answer.status_code}{_said(answer)}")


def _said(answer: httpx.Response) -> str:
    found = _all(answer.text[:4000], "Message")
    return f": {unescape(found[0])[:300]}" if found else ""


def _all(text: str, name: str) -> list[str]:
    """What stands in each element of this name. The answers are flat, and a parser would believe more than we need."""
    return re.findall(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)


def _only(text: str, name: str) -> str:
    found = _all(text, name)
    if not found:
        raise StoreError(f"the object store's answer cannot be understood: it lacks {name}")
    return unescape(found[0])


async def _joined(first: bytes, second: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    yield second
    async for part in rest:
        yield part


async def _parts(pieces: AsyncIterable[bytes], part_bytes: int) -> AsyncGenerator[bytes]:
    """The same bytes in pieces of a part's size; the last one is what is left."""
    held = bytearray()
    number = 0
    async for piece in pieces:
        held += piece
        while len(held) >= (size := part_bytes * (1 + number // PARTS_PER_SIZE)):
            yield bytes(held[:size])
            del held[:size]
            number += 1
    if held:
        yield bytes(held)
