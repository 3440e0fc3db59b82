"""Requests by path, with answers as plain JSON: for routes that have no method of their own. The command line uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.client.flavours import F, Resource, Values, iteration, operation, procedure
from orchestrator.client.requests import ANSWER_S, UPLOAD_S, Json, Reply, Request
from orchestrator.client.steps import PAGE, PATIENCE_S, Send, Steps, StreamEvent, download, follow, pages


class Plain(Resource[F]):
    @operation
    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        query: Json | None = None,
        file: Path | bytes | None = None,
        timeout_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> Request[Json]:
        """One request. It is repeated after a lost connection if it is a GET or PUT, or has an idempotency key."""
        headers = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        limit_s = timeout_s or (ANSWER_S if file is None else UPLOAD_S)
        return Request(method, path, dict, query or {}, json=json, file=file, headers=headers, timeout_s=limit_s)

    @procedure
    def reply(self, path: str, *, timeout_s: float = ANSWER_S) -> Steps[Reply]:
        """The answer to a GET as it is, whatever its status."""
        return _reply(Request("GET", path, timeout_s=timeout_s))

    @iteration
    def items(self, path: str, *, limit: int | None = None, page: int = PAGE, query: Json | None = None) -> Values[Json]:
        """Iterates over the items of a list through its pages."""
        return Values(pages(Request("GET", path, dict, query or {}), self._retry, limit=limit, page=page))

    @iteration
    def events(self, path: str, *, after: str | None = None, patience_s: float = PATIENCE_S) -> Values[StreamEvent]:
        """Iterates over the events of the run or job at `path` until it ends."""
        return Values(follow(f"{path}/stream", Request("GET", path, dict), after=after, patience_s=patience_s))

    @iteration
    def download(self, path: str, *, query: Json | None = None) -> Values[bytes]:
        """Iterates over the pieces of a file."""
        return Values(download(Request("GET", path, query=query or {})))


def _reply(request: Request[None]) -> Steps[Reply]:
    reply: Reply = yield Send(request)
    return reply
