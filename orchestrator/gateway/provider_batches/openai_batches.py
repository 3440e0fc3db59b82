"""OpenAI's Batch API, and compatible ones: the requests are uploaded as a file, the answers are files again.

A batch carries the part's id in its metadata, so that one whose creation was not confirmed is found in the list.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.gateway.protocols.protocol import Message
from orchestrator.gateway.provider_batches.http import BatchHttp, BatchTrouble, safe_id
from orchestrator.gateway.provider_batches.port import CallOutcome, Known, RemoteBatch, Search
from orchestrator.gateway.provider_batches.tables import BatchPart

WINDOW = "24h"
MARK = "benchyard_part"
"""The name in a batch's metadata that holds the part's id."""
ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
MAX_PAGES = 50
CLOCK_SKEW = timedelta(hours=1)
NOT_AGAIN = frozenset({400, 401, 403, 404, 413, 422})
"""Statuses of one request that another batch would get again."""


class OpenAIBatches:
    """`endpoint` is the path that the calls are for."""

    def __init__(self, http: BatchHttp, endpoint: str) -> None:
        self._http = http
        self._endpoint = endpoint

    def line(self, custom_id: str, body: Message) -> bytes:
        return json.dumps({"custom_id": custom_id, "method": "POST", "url": self._endpoint, "body": body}).encode()

    @property
    def frame(self) -> tuple[bytes, bytes, bytes]:
        return b"", b"\n", b"\n"

    async def upload(self, part: BatchPart, file: Path) -> str | None:
        answer = await self._http.upload("/v1/files", {"purpose": "batch"}, file, f"{part.id}.jsonl")
        return safe_id(answer.get("id"), "file id")

    async def create(self, part: BatchPart, file: Path) -> RemoteBatch:
        body = {
            "input_file_id": part.file_id,
            "endpoint": self._endpoint,
            "completion_window": WINDOW,
            "metadata": {MARK: part.id},
        }
        return _remote(await self._http.post("/v1/batches", body))

    async def find(self, part: BatchPart, known: Known) -> Search:
        query, oldest = {"limit": "100"}, (part.submit_began_at or part.created_at) - CLOCK_SKEW
        for _ in range(MAX_PAGES):
            page = await self._http.get("/v1/batches", query)
            batches = [batch for batch in page.get("data") or [] if isinstance(batch, dict)]
            for batch in batches:
                metadata = batch.get("metadata")
                named = isinstance(metadata, dict) and metadata.get(MARK) == part.id
                if named or (part.file_id is not None and batch.get("input_file_id") == part.file_id):
                    return Search(_remote(batch))
            created = [at for batch in batches if (at := _time(batch.get("created_at"))) is not None]
            last = page.get("last_id") or (batches[-1].get("id") if batches else None)
            if not page.get("has_more") or not isinstance(last, str) or (created and max(created) < oldest):
                return Search()
            query = {"limit": "100", "after": last}
        raise BatchTrouble(f"the provider's list of batches has more than {MAX_PAGES} pages")

    async def get(self, remote_id: str) -> RemoteBatch:
        return _remote(await self._http.get(f"/v1/batches/{remote_id}"))

    async def cancel(self, remote_id: str) -> None:
        await self._http.post(f"/v1/batches/{remote_id}/cancel")

    async def results(self, remote: RemoteBatch) -> AsyncIterator[CallOutcome]:
        for file in remote.files:
            async for line in self._http.lines(f"/v1/files/{file}/content"):
                if (outcome := _outcome(line)) is not None:
                    yield outcome


def _remote(batch: dict[str, Any]) -> RemoteBatch:
    status = batch.get("status")
    if not isinstance(status, str):
        raise BatchTrouble("the provider's answer has no status of the batch")
    counts = batch.get("request_counts")
    counts = counts if isinstance(counts, dict) else {}
    files = [batch.get(name) for name in ("output_file_id", "error_file_id")]
    return RemoteBatch(
        id=safe_id(batch.get("id"), "batch id"),
        ended=status in ENDED,
        answered=_count(counts.get("completed")),
        failed=_count(counts.get("failed")),
        expires_at=_time(batch.get("expires_at")),
        error=_errors(batch) if status == "failed" else ("the batch expired" if status == "expired" else ""),
        files=tuple(safe_id(file, "file id") for file in files if file),
    )


def _outcome(line: bytes) -> CallOutcome | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    name, response, error = entry.get("custom_id"), entry.get("response"), entry.get("error")
    if isinstance(response, dict):
        status, body = response.get("status_code"), response.get("body")
        if status == 200 and isinstance(body, dict):
            return CallOutcome(name, body)
        inner = body.get("error", body) if isinstance(body, dict) else body
        message = inner.get("message") if isinstance(inner, dict) else inner
        return CallOutcome(name, error=f"status {status}: {message}"[:1000], again=status not in NOT_AGAIN)
    words = error.get("message") or error.get("code") if isinstance(error, dict) else error
    return CallOutcome(name, error=str(words or "the provider gives no reason")[:1000])


def _errors(batch: dict[str, Any]) -> str:
    errors = batch.get("errors")
    entries = errors.get("data") if isinstance(errors, dict) else None
    messages = [str(entry.get("message")) for entry in entries or [] if isinstance(entry, dict)]
    return "the provider refused the batch: " + ("; ".join(messages[:3]) or "it gives no reason")[:900]


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _time(value: object) -> datetime | None:
    if not isinstance(value, int | float) or not 0 < value < 1e11:
        return None
    return datetime.fromtimestamp(value, UTC)
