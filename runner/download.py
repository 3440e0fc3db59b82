"""Streams lines of JSON from the orchestrator; reads again after a broken stream, until nothing is missing."""

import asyncio
import random
import zlib
from collections.abc import AsyncIterator, Callable

import httpx

from runner.log import Log

MAX_PAUSE_S = 5.0
NEEDED_READS = 2
TRY_AGAIN = frozenset({408, 425, 429})


class DownloadRefused(Exception):
    """The orchestrator refuses the request; repeating it would not help."""


async def download_lines(
    client: httpx.AsyncClient, url: str, missing: Callable[[], int], log: Log, subject: str
) -> AsyncIterator[bytes]:
    """Yields the non-empty lines until nothing is `missing` or the stream was read to its end twice. Lines may repeat."""
    whole_reads, failures = 0, 0
    while (before := missing()) and whole_reads < NEEDED_READS:
        try:
            async for line in _read(client, url):
                yield line
            whole_reads += 1
            continue
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            if status < 500 and status not in TRY_AGAIN:
                message = f"the orchestrator refuses the {subject} with status {status}: {error.response.text[:300]}"
                raise DownloadRefused(message) from None
            trouble = f"status {status}"
        except (httpx.HTTPError, zlib.error) as error:
            trouble = f"{type(error).__name__}: {error}"
        failures = 0 if missing() < before else failures + 1
        log(f"{subject}.again", trouble=trouble, missing=missing())
        await asyncio.sleep(min(0.1 * 2 ** min(failures, 10), MAX_PAUSE_S) * random.uniform(0.7, 1.3))


async def _read(client: httpx.AsyncClient, url: str) -> AsyncIterator[bytes]:
    async with client.stream("GET", url, headers={"Accept-Encoding": "gzip"}) as answer:
        if not answer.is_success:
            await answer.aread()
            answer.raise_for_status()
        pieces: list[bytes] = []
        async for chunk in answer.aiter_bytes():
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                if (whole := b"".join([*pieces, line])).strip():
                    yield whole
                pieces.clear()
            pieces.append(rest)
        if (whole := b"".join(pieces)).strip():
            yield whole
