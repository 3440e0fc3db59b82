"""Anthropic's Message Batches: the requests are the body of one POST, the results are lines of JSON.

A batch has no metadata, and its requests can be read only in its results. One whose creation was not confirmed is therefore
looked for among the batches of that time with as many requests: while such a batch is at work, nothing is submitted again,
and the names in its results decide.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.gateway.protocols.protocol import Message
from orchestrator.gateway.provider_batches.http import BatchHttp, BatchTrouble, safe_id
from orchestrator.gateway.provider_batches.lots import position_of
from orchestrator.gateway.provider_batches.port import CallOutcome, Known, RemoteBatch, Search
from orchestrator.gateway.provider_batches.tables import BatchPart

PATH = "/v1/messages/batches"
MAX_PAGES = 50
CLOCK_SKEW = timedelta(minutes=15)
NOT_AGAIN = frozenset(
    {"invalid_request_error", "authentication_error", "permission_error", "not_found_error", "request_too_large"}
)


class AnthropicBatches:
    def __init__(self, http: BatchHttp) -> None:
        self._http = http

    def line(self, custom_id: str, body: Message) -> bytes:
        return json.dumps({"custom_id": custom_id, "params": body}).encode()

    @property
    def frame(self) -> tuple[bytes, bytes, bytes]:
        return b'{"requests":[', b",", b"]}"

    async def upload(self, part: BatchPart, file: Path) -> str | None:
        return None

    async def create(self, part: BatchPart, file: Path) -> RemoteBatch:
        return _remote(await self._http.post_file(PATH, file))

    async def find(self, part: BatchPart, known: Known) -> Search:
        wait = False
        for batch in await self._candidates(part, known):
            remote = _remote(batch)
            if not remote.ended:
                wait = True
            elif await self._is_of(part, remote):
                return Search(remote)
        return Search(wait=wait)

    async def get(self, remote_id: str) -> RemoteBatch:
        return _remote(await self._http.get(f"{PATH}/{remote_id}"))

    async def cancel(self, remote_id: str) -> None:
        await self._http.post(f"{PATH}/{remote_id}/cancel")

    async def results(self, remote: RemoteBatch) -> AsyncIterator[CallOutcome]:
        async for line in self._http.lines(f"{PATH}/{remote.id}/results"):
            if (outcome := _outcome(line)) is not None:
                yield outcome

    async def _candidates(self, part: BatchPart, known: Known) -> list[dict[str, Any]]:
        """Batches that may be the part's: of that time, of that size, and of no other part."""
        began = part.submit_began_at or part.created_at
        query = {"limit": "100"}
        candidates: list[dict[str, Any]] = []
        for _ in range(MAX_PAGES):
            page = await self._http.get(PATH, query)
            batches = [batch for batch in page.get("data") or [] if isinstance(batch, dict)]
            times = [_time(batch.get("created_at")) for batch in batches]
            candidates += [
                batch
                for batch, at in zip(batches, times, strict=True)
                if (at is None or at >= began - CLOCK_SKEW) and sum(_counts(batch).values()) == part.calls
            ]
            told = [at for at in times if at is not None]
            last = page.get("last_id")
            if not page.get("has_more") or not isinstance(last, str) or (told and max(told) < began - CLOCK_SKEW):
                break
            query = {"limit": "100", "after_id": last}
        else:
            raise BatchTrouble(f"the provider's list of batches has more than {MAX_PAGES} pages")
        taken = await known([str(batch.get("id")) for batch in candidates])
        return [batch for batch in candidates if batch.get("id") not in taken]

    async def _is_of(self, part: BatchPart, remote: RemoteBatch) -> bool:
        async for outcome in self.results(remote):
            return position_of(part.id, outcome.custom_id) is not None
        return False


def _counts(batch: dict[str, Any]) -> dict[str, int]:
    counts = batch.get("request_counts")
    return {name: count for name, count in counts.items() if isinstance(count, int)} if isinstance(counts, dict) else {}


def _remote(batch: dict[str, Any]) -> RemoteBatch:
    status = batch.get("processing_status")
    if not isinstance(status, str):
        raise BatchTrouble("the provider's answer has no status of the batch")
    counts = _counts(batch)
    return RemoteBatch(
        id=safe_id(batch.get("id"), "batch id"),
        ended=status == "ended",
        answered=counts.get("succeeded", 0),
        failed=sum(counts.get(name, 0) for name in ("errored", "canceled", "expired")),
        expires_at=_time(batch.get("expires_at")),
    )


def _outcome(line: bytes) -> CallOutcome | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    result = entry.get("result") if isinstance(entry, dict) else None
    if not isinstance(result, dict):
        return None
    name, kind, message = entry.get("custom_id"), result.get("type"), result.get("message")
    if kind == "succeeded" and isinstance(message, dict):
        return CallOutcome(name, message)
    if kind != "errored":
        return CallOutcome(name, error=f"the request was {kind}"[:200])
    error = result.get("error")
    inner = error.get("error", error) if isinstance(error, dict) else {}
    inner = inner if isinstance(inner, dict) else {}
    words = f"{inner.get('type')}: {inner.get('message')}"[:1000]
    return CallOutcome(name, error=words, again=inner.get("type") not in NOT_AGAIN)


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
