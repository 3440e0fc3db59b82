"""HTTP to a provider's batch interface: JSON requests, uploads and downloads of any size, with bounded memory.

The key goes only to the provider's own origin; redirects are not followed. Errors say whether the provider can have acted.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from orchestrator.gateway.edge.errors import GatewayError
from orchestrator.outbound.addresses import AddressRefused

TIMEOUT = httpx.Timeout(120.0, connect=20.0)
MAX_ANSWER_BYTES = 16 << 20
MAX_LINE_BYTES = 32 << 20
PIECE_BYTES = 256 << 10
BUSY = frozenset({408, 409, 425, 429})
"""Refusals of a client's request that may be repeated."""

_SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,200}")


class BatchTrouble(Exception):
    """A request got no usable answer. `acted`: the provider may have carried it out all the same. `final`: it would be
    refused again. `status` is that of the answer, if there was one."""

    def __init__(self, message: str, *, acted: bool = True, final: bool = False, status: int | None = None) -> None:
        super().__init__(message)
        self.acted = acted
        self.final = final
        self.status = status


def safe_id(value: object, what: str) -> str:
    """An identifier from a provider that may stand in a path."""
    if not isinstance(value, str) or not _SAFE_ID.fullmatch(value) or set(value) == {"."}:
        raise BatchTrouble(f"the provider's answer has no usable {what}")
    return value


class BatchHttp:
    """`url` turns a path such as `/v1/batches` into the provider's; `headers` carry its key, which `secrets` name."""

    def __init__(
        self, client: httpx.AsyncClient, url: Any, headers: Mapping[str, str], secrets: tuple[str, ...] = ()
    ) -> None:
        self._client, self._url, self._headers, self._secrets = client, url, headers, secrets
        self.secrets = secrets

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        return await self._json("GET", path, query=query)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        content = None if body is None else json.dumps(body).encode()
        return await self._json("POST", path, content=content, headers={"content-type": "application/json"})

    async def post_file(self, path: str, file: Path) -> dict[str, Any]:
        """Post a file of JSON as the body."""
        size = await asyncio.to_thread(lambda: file.stat().st_size)
        headers = {"content-type": "application/json", "content-length": str(size)}
        return await self._json("POST", path, content=_pieces(file), headers=headers)

    async def upload(self, path: str, fields: Mapping[str, str], file: Path, name: str) -> dict[str, Any]:
        """Post a file as a form, the way that browsers do."""
        with file.open("rb") as opened:
            files = {"file": (name, opened, "application/jsonl")}
            request = self._client.build_request(
                "POST", self._url(path), data=dict(fields), files=files, headers=self._headers
            )
            return await self._answer(request)

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """The lines of a file at the provider."""
        request = self._client.build_request("GET", self._url(path), headers=self._headers)
        try:
            response = await self._client.send(request, stream=True)
            try:
                if response.status_code != httpx.codes.OK:
                    raise await self._refusal(response)
                rest = b""
                async for piece in response.aiter_bytes():
                    *whole, rest = (rest + piece).split(b"\n")
                    for line in whole:
                        if line.strip():
                            yield line
                    if len(rest) > MAX_LINE_BYTES:
                        raise BatchTrouble(f"a line of the results is longer than {MAX_LINE_BYTES} bytes", final=True)
                if rest.strip():
                    yield rest
            finally:
                await response.aclose()
        except (httpx.HTTPError, AddressRefused, OSError) as error:
            raise self._trouble(error) from error

    async def _json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        content: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        all_headers = {**self._headers, **(headers or {})}
        request = self._client.build_request(method, self._url(path), params=query, content=content, headers=all_headers)
        return await self._answer(request)

    async def _answer(self, request: httpx.Request) -> dict[str, Any]:
        try:
            response = await self._client.send(request, stream=True)
            try:
                if not response.is_success:
                    raise await self._refusal(response)
                received = await _read(response, MAX_ANSWER_BYTES)
            finally:
                await response.aclose()
        except (httpx.HTTPError, AddressRefused, OSError) as error:
            raise self._trouble(error) from error
        try:
            answer = json.loads(received)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise BatchTrouble("the provider's answer is not a JSON object")
        return answer

    async def _refusal(self, response: httpx.Response) -> BatchTrouble:
        status = response.status_code
        text = (await _read(response, 64 << 10, cut=True)).decode("utf-8", "replace")
        words = f"status {status}: {_message(text)}"
        final = 300 <= status < 500 and status not in BUSY
        return BatchTrouble(self._scrubbed(words), acted=status >= 500, final=final, status=status)

    def _trouble(self, error: Exception) -> BatchTrouble:
        never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError | AddressRefused)
        final = isinstance(error, AddressRefused)
        return BatchTrouble(self._scrubbed(f"{type(error).__name__}: {error}"), acted=not never_sent, final=final)

    def _scrubbed(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        return text[:1000]


def of_gateway_error(error: GatewayError) -> BatchTrouble:
    """A key that is missing or cannot be read. It may be entered later."""
    return BatchTrouble(error.message, acted=False)


def _message(text: str) -> str:
    """The sentence in an error body of any provider, else the body."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return text[:500]
    error = body.get("error", body) if isinstance(body, dict) else body
    sentence = error.get("message") if isinstance(error, dict) else error
    return str(sentence or text)[:500]


async def _read(response: httpx.Response, most: int, *, cut: bool = False) -> bytes:
    received = bytearray()
    async for piece in response.aiter_bytes():
        received += piece
        if len(received) > most:
            if cut:
                break
            raise BatchTrouble(f"the provider's answer is larger than {most} bytes")
    return bytes(received[:most])


async def _pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(PIECE_BYTES):
            yield piece
