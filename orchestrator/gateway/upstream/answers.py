"""Reads the answer to one try, streamed or whole, decompressed and without our secrets. Memory is bounded.

It is requested as a stream, unless the server refuses that, and assembled here, so that a slow model can be told from a
dead connection, and a truncated answer from a whole one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.gateway.calls import Call
from orchestrator.gateway.protocols.protocol import Assembler, BadStream, Message, StreamedError
from orchestrator.gateway.protocols.sse import EventReader, EventTooLarge
from orchestrator.gateway.upstream.connections.connection import ConnectionBroke, HttpConnection, ReceiveTimeout
from orchestrator.gateway.upstream.connections.framing import BadCoding, BadResponse, Head, UnknownCoding, decoder_of
from orchestrator.gateway.upstream.errors import bad_answer, status_error, streamed_error, too_large, unknown_coding
from orchestrator.gateway.upstream.kinds.dialects import understood
from orchestrator.gateway.upstream.kinds.table import Dialect
from orchestrator.gateway.upstream.port import Reply
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.gateway.upstream.secrets.scrubbing import clean_answer
from orchestrator.system.clock import Clock

STREAM_OVERHEAD = 16
"""A stream wraps every few letters of an answer in an event of some hundred bytes."""
MAX_ERROR_BYTES = 64 << 10
GOODBYE_S = 1.0
STREAM_BEGINS = (b"data:", b"event:", b"id:", b":")
BLANK = b"\xef\xbb\xbf \r\n\t"


class AnswerReader:
    """Reads the answers of one provider. Raises `UpstreamError`, and the errors of `HttpConnection.piece`."""

    def __init__(self, provider: Provider, clock: Clock, max_bytes: int) -> None:
        self._provider = provider
        self._clock = clock
        self._max_bytes = max_bytes

    async def read(self, call: Call, head: Head, connection: HttpConnection, secrets: Sequence[str]) -> Reply:
        name, headers = self._provider.name, head.headers
        if head.status != 200:
            body = await _error_body(connection, headers)
            raise status_error(name, head.status, headers, body, secrets, self._clock.now())
        try:
            pieces = _Pieces(connection, headers)
            streamed = "text/event-stream" in headers.get("content-type", "").lower()
            if streamed:
                message = await self._streamed(call, pieces)
            else:
                message = self._whole(call, await _body(pieces, self._max_bytes))
                if self._provider.kind.dialect is not Dialect.PLAIN:
                    message = understood(self._provider.kind, message, call.context.model)
            call.wire.check(message)
            message = clean_answer(message, secrets)
        except StreamedError as error:
            raise streamed_error(name, error, secrets) from error
        except UnknownCoding as error:
            raise unknown_coding(name, str(error)) from error
        except BadCoding as error:
            raise bad_answer(name, str(error)) from error
        except BadStream as error:
            raise bad_answer(name, str(error), error.excerpt, secrets) from error
        except EventTooLarge as error:
            raise too_large(name, self._max_bytes) from error
        return Reply(message, streamed)

    async def _streamed(self, call: Call, pieces: _Pieces) -> Message:
        assembler, reader, size = call.wire.assembler(), EventReader(self._max_bytes), 0
        try:
            while piece := await pieces.next():
                size += len(piece)
                for event in reader.feed(piece):
                    assembler.feed(event)
                if assembler.size > self._max_bytes or size > self._max_bytes * STREAM_OVERHEAD:
                    raise EventTooLarge
                if assembler.over:
                    await _goodbye(pieces.connection)
                    break
            for event in reader.end():
                assembler.feed(event)
        except (ConnectionBroke, ReceiveTimeout):
            if not assembler.complete:
                raise
        return _put_together(assembler)

    def _whole(self, call: Call, body: bytes) -> Message:
        """An answer without the content type of a stream; it may be one all the same."""
        if not body.lstrip(BLANK).startswith(STREAM_BEGINS):
            return _object(body)
        assembler, reader = call.wire.assembler(), EventReader(self._max_bytes)
        for event in (*reader.feed(body), *reader.end()):
            if not assembler.over:
                assembler.feed(event)
        return _put_together(assembler)


class _Pieces:
    """The pieces of an answer as they arrive, decompressed if needed. Raises the same errors as `HttpConnection.piece`."""

    def __init__(self, connection: HttpConnection, headers: Mapping[str, str]) -> None:
        self.connection = connection
        self._decoder = decoder_of(headers.get("content-encoding", ""))
        self._plain: Iterator[bytes] = iter(())

    async def next(self) -> bytes:
        """Empty at the end."""
        if self._decoder is None:
            return await self.connection.piece()
        while not (plain := next(self._plain, b"")):
            piece = await self.connection.piece()
            if not piece:
                return b""
            self._plain = self._decoder.feed(piece)
        await asyncio.sleep(0)  # a small piece may decompress to a large one
        return plain


async def _error_body(connection: HttpConnection, headers: Mapping[str, str]) -> bytes:
    try:
        return await _body(_Pieces(connection, headers), MAX_ERROR_BYTES, cut=True)
    except (UnknownCoding, BadCoding) as error:
        return str(error).encode()


async def _body(pieces: _Pieces, max_bytes: int, *, cut: bool = False) -> bytes:
    received = bytearray()
    while piece := await pieces.next():
        received += piece
        if len(received) > max_bytes:
            if cut:
                break
            raise EventTooLarge
    return bytes(received[:max_bytes])


async def _goodbye(connection: HttpConnection) -> None:
    """Read to the proper end so that the connection can be reused, but do not wait long for it."""
    try:
        async with asyncio.timeout(None if connection.all_here else GOODBYE_S):
            while await connection.piece():
                pass
    except (TimeoutError, ConnectionBroke, ReceiveTimeout, BadResponse):
        return


def _put_together(assembler: Assembler) -> Message:
    if not assembler.complete:
        raise BadStream("the stream ended before the answer did")
    return assembler.message()


def _object(body: bytes) -> Message:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadStream("it is not JSON", body.decode("utf-8", "replace")) from error
    if not isinstance(message, dict):
        raise BadStream("it is not a JSON object")
    return message
