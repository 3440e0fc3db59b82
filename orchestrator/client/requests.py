"""Requests and answers as values: what is sent, and how an answer is read. Nothing here does input or output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from orchestrator.client.errors import BY_STATUS, ApiError, BenchyardError, NotBenchyard

T = TypeVar("T")
Json = dict[str, Any]
Items: TypeAlias = list[T]
"""The items of a list with pages. (Resources have a method `list`.)"""

ANSWER_S, UPLOAD_S, STREAM_S = 35.0, 600.0, 45.0
"""How long the service may be silent. On a stream it sends a comment every 15 s."""


@dataclass(frozen=True)
class Request(Generic[T]):
    """One request, and the type of its answer (`None`: there is nothing to read)."""

    method: str
    path: str
    answer: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    file: Path | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    keyed: bool = False
    """The service accepts an Idempotency-Key, so that a repeated request does its work once."""
    timeout_s: float = ANSWER_S

    @property
    def is_repeatable(self) -> bool:
        return self.method in ("GET", "PUT") or "idempotency-key" in self.headers

    def having(self, **headers: str) -> Request[T]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **named})

    def asking(self, **query: Any) -> Request[T]:
        return replace(self, query={**self.query, **query})

    @property
    def params(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in self.query.items() if value is not None}


@dataclass(frozen=True)
class Reply:
    """An answer with its whole body."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    where: str
    """Host and port of the server."""


def at(*parts: str | int) -> str:
    """A path below /api, each part quoted."""
    return "/api/" + "/".join(quote(str(part), safe="") for part in parts)


def given(fields: Mapping[str, Any]) -> Json:
    """A body without the fields that are None; dates as text."""
    return {name: _plain(value) for name, value in fields.items() if value is not None}


def read(request: Request[T], reply: Reply) -> T:
    """The answer as the type that the request asks for. Raises `ApiError` if it is a problem."""
    if not 200 <= reply.status < 300:
        raise refusal(reply)
    if request.answer is None:
        return None  # type: ignore[return-value]
    try:
        if isinstance(request.answer, type) and issubclass(request.answer, BaseModel):
            return request.answer.model_validate_json(reply.body)  # type: ignore[return-value]
        body = json.loads(reply.body) if reply.body else {}
    except (ValueError, ValidationError) as error:
        raise NotBenchyard(reply.where, reply.status) from error
    if not isinstance(body, dict):
        raise NotBenchyard(reply.where, reply.status)
    return body  # type: ignore[return-value]


def refusal(reply: Reply) -> BenchyardError:
    try:
        body = json.loads(reply.body)
        detail, code = str(body["detail"]).strip(), str(body.get("code", ""))
        request_id = body.get("request_id") or reply.headers.get("x-request-id")
        errors = [error for error in body.get("errors") or () if isinstance(error, dict)]
    except (ValueError, TypeError, KeyError, AttributeError):
        return NotBenchyard(reply.where, reply.status)
    kind = BY_STATUS.get(reply.status, ApiError)
    return kind(reply.status, code, _sentence(detail), None if request_id is None else str(request_id), errors)


def _sentence(detail: str) -> str:
    first = detail.split(" ", 1)[0]
    is_name = first.endswith(":") or "." in first[1:-1]  # of a field or a file, which stays as it is
    sentence = detail if is_name else detail[:1].upper() + detail[1:]
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return {name: _plain(item) for name, item in value.items()} if isinstance(value, dict) else value
