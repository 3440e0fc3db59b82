"""The traces of a job, streamed from the orchestrator; a broken stream is read again, what is here is passed over."""

from __future__ import annotations

import asyncio
import json
import random
import zlib
from collections.abc import AsyncIterator

import httpx

from runner.contract.evals import TraceLine
from runner.contract.events import FailureReason
from runner.errors import RunFailed
from runner.log import Log

MAX_PAUSE_S = 5.0
TRY_AGAIN = frozenset({408, 425, 429})


async def fetch(client: httpx.AsyncClient, url: str, count: int, log: Log) -> AsyncIterator[TraceLine]:
    """`count` traces, each once. Raises `RunFailed` when the orchestrator refuses them or has fewer."""
    seen: set[int] = set()
    failures, whole = 0, 0
    while len(seen) < count and whole < 2:
        before = len(seen)
        try:
            async for line in _read(client, url):
                if line.key not in seen:
                    seen.add(line.key)
                    yield line
            whole += 1
            continue
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            if status < 500 and status not in TRY_AGAIN:
                message = f"the orchestrator refuses the traces with status {status}: {error.response.text[:300]}"
                raise RunFailed(FailureReason.DATASET_ERROR, message) from None
            trouble = f"status {status}"
        except (httpx.HTTPError, zlib.error) as error:
            trouble = f"{type(error).__name__}: {error}"
        failures = 0 if len(seen) > before else failures + 1
        log("traces.again", trouble=trouble, missing=count - len(seen))
        await asyncio.sleep(min(0.1 * 2 ** min(failures, 10), MAX_PAUSE_S) * random.uniform(0.7, 1.3))
    if len(seen) < count:
        raise RunFailed(FailureReason.DATASET_ERROR, f"{count - len(seen)} of {count} traces were not delivered")


async def _read(client: httpx.AsyncClient, url: str) -> AsyncIterator[TraceLine]:
    async with client.stream("GET", url, headers={"Accept-Encoding": "gzip"}) as answer:
        if not answer.is_success:
            await answer.aread()
            answer.raise_for_status()
        rest = b""
        async for chunk in answer.aiter_bytes():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    yield TraceLine.model_validate_json(line)
        if rest.strip():
            yield TraceLine.model_validate(json.loads(rest))
