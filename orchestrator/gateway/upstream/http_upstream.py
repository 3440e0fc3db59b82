"""One try at a real provider over HTTP. The only place where a provider's key is read to make a call.

The answer is requested as a stream, unless the server refuses that, and assembled here, so that a slow model can be told
from a dead connection, and a truncated answer from a whole one. Redirects are not followed. Memory is bounded by
`max_answer_bytes`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.gateway.calls import Call
from orchestrator.gateway.edge.errors import Code, GatewayError, UpstreamError
from orchestrator.gateway.pacing.retry import exhausted_for_s
from orchestrator.gateway.protocols.protocol import Assembler, BadStream, Message, StreamedError
from orchestrator.gateway.protocols.sse import EventReader, EventTooLarge
from orchestrator.gateway.upstream.connection import ConnectFailed, ConnectionBroke, HttpConnection, ReceiveTimeout
from orchestrator.gateway.upstream.connections import Connections, refused_by
from orchestrator.gateway.upstream.credentials import KeySource, NoKeys, Payer
from orchestrator.gateway.upstream.errors import (
    bad_answer,
    status_error,
    streamed_error,
    too_large,
    transport_error,
    unknown_coding,
)
from orchestrator.gateway.upstream.framing import BadCoding, BadResponse, Head, Target, UnknownCoding, decoder_of
from orchestrator.gateway.upstream.port import Received, Reply
from orchestrator.gateway.upstream.providers import SECRET_CHARS, Provider, clean_answer, secrets_in_headers
from orchestrator.gateway.upstream.request_forms import SENTENCES, Adjustment, adjusted, other_form, refused_parameter
from orchestrator.outbound.addresses import AddressRefused
from orchestrator.outbound.proxies import Proxies
from orchestrator.outbound.tls import tls_context
from orchestrator.system.clock import Clock
from runner.contract.run_spec import ErrorScope, Protocol

MAX_ANSWER_BYTES = 16 << 20
STREAM_OVERHEAD = 16
"""A stream wraps every few letters of an answer in an event of some hundred bytes."""
MAX_ERROR_BYTES = 64 << 10
LONGEST_PAUSE_S = 60.0
IDLE_S = 300.0
GOODBYE_S = 1.0
LIMIT_TOLERANCE = 1.05
"""Servers count the last tokens differently."""
STREAM_BEGINS = (b"data:", b"event:", b"id:", b":")
BLANK = b"\xef\xbb\xbf \r\n\t"
FIXED_HEADERS = {
    "content-type": "application/json",
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "user-agent": "benchyard",
}


class HttpUpstream:
    def __init__(
        self,
        provider: Provider,
        env: Mapping[str, str],
        *,
        clock: Clock,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        idle_s: float = IDLE_S,
        tls: ssl.SSLContext | None = None,
        keys: KeySource | None = None,
    ) -> None:
        self._provider = provider
        self._keys = keys or NoKeys()
        self._env = env
        self._clock = clock
        self._max_answer_bytes = max_answer_bytes
        self._proxy = Proxies(env).of(*provider.origin)
        self._connections = Connections(
            provider.origin,
            rule=provider.address_rule,
            tls=tls or tls_context(env),
            proxy=self._proxy,
            idle_s=idle_s,
            monotonic=clock.monotonic,
        )
        self._targets: dict[str, Target] = {}
        self._secrets = secrets_in_headers(provider.headers)
        self._forms: dict[str, frozenset[Adjustment]] = {}
        """By model, what its server taught. Lost at a restart, and learned again by one refused request."""
        self._ignored_limits: dict[str, str] = {}
        self.server = json.dumps([provider.base_url, sorted(provider.headers.items())])

    async def ask(self, call: Call, received: Received) -> Reply:
        if call.wire.protocol not in self._provider.protocols:
            spoken = ", ".join(sorted(self._provider.protocols))
            raise GatewayError(404, Code.NOT_FOUND, f"provider {self._provider.name} supports only {spoken}")
        key = await self._key(call.context.payer)
        model = call.context.model
        form = known = self._forms.get(model, frozenset())
        refusal: UpstreamError | None = None
        while True:
            body = call.wire.outgoing(call.body)
            body = adjusted(body, form) if form else body
            try:
                reply = await self._ask_once(call, body, key, received)
            except UpstreamError as error:
                parameter = refused_parameter(call.wire.protocol, body, error)
                if parameter is None:
                    raise
                other = other_form(call.wire.protocol, parameter, form, known)
                if other is None:
                    raise refusal or error from error
                form, refusal = other, refusal or error
            else:
                if form != known:
                    self._forms[model] = form
                self._look_at_limit(call, body, reply.message)
                return reply

    def notes(self, model: str) -> list[str]:
        sentences = [SENTENCES[adjustment] for adjustment in sorted(self._forms.get(model, ()))]
        return [*sentences, *([self._ignored_limits[model]] if model in self._ignored_limits else [])]

    def _look_at_limit(self, call: Call, body: Message, message: Message) -> None:
        """Notice a server that ignores the token limit, on which the worst case of a call depends. Some obey its older
        name."""
        limit, usage = call.request.max_output_tokens, call.wire.usage(message)
        if limit is None or usage is None or usage.output_tokens <= limit * call.request.answers * LIMIT_TOLERANCE:
            return
        model = call.context.model
        if call.wire.protocol is Protocol.OPENAI_CHAT and "max_completion_tokens" in body:
            self._forms[model] = self._forms.get(model, frozenset()) | {Adjustment.MAX_TOKENS}
        else:
            self._ignored_limits[model] = (
                f"ignores the token limit: it gave {usage.output_tokens} tokens where {limit} were allowed, "
                "so a run can cost more than its budget"
            )

    async def _ask_once(self, call: Call, body: Message, key: str, received: Received) -> Reply:
        request = self._request(call, body, key)
        try:
            async with asyncio.timeout(call.context.request_timeout_s), self._connections.one() as connection:
                head = await connection.request(request, call.wire.last_words)
                if head.status == 407 and self._proxy is not None:
                    raise refused_by(self._proxy, head.status)
                if head.status == 200:
                    pause_s = exhausted_for_s(head.headers, self._clock.now())
                    received(None if pause_s is None else min(pause_s, LONGEST_PAUSE_S))
                return await self._reply(
                    call, head, connection, (*self._secrets, key) if len(key) >= SECRET_CHARS else self._secrets
                )
        except AddressRefused as error:
            message = f"provider {self._provider.name} may not be called: {error}"
            raise UpstreamError(502, message, retry=False, scope=ErrorScope.RUN) from error
        except (ConnectFailed, ConnectionBroke, ReceiveTimeout, BadResponse, TimeoutError) as error:
            raise transport_error(self._provider.name, error) from error

    async def close(self) -> None:
        self._connections.close()

    async def _key(self, payer: Payer) -> str:
        try:
            key = await self._keys.secret(payer, self._provider) if payer.key_id else self._provider.key.read(self._env)
        except (OSError, ValueError) as error:
            sentence = f"the key file of provider {self._provider.name} cannot be read"
            raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, sentence) from error
        if not key and self._provider.key_needed:
            sentence = f"there is no key for provider {self._provider.name}: set {self._provider.key.variable}"
            raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, sentence)
        if not key.isascii() or not key.isprintable():
            sentence = f"the key of provider {self._provider.name} has characters that no key has"
            raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, sentence)
        return key

    def _request(self, call: Call, body: Message, key: str) -> bytes:
        protocol = call.wire.protocol
        headers = dict(call.headers) if protocol is Protocol.ANTHROPIC else {}
        if key:
            headers |= {"x-api-key": key} if protocol is Protocol.ANTHROPIC else {"authorization": f"Bearer {key}"}
        target = self._targets.get(call.wire.path)
        if target is None:
            target = self._targets[call.wire.path] = Target(
                self._provider.url(protocol, call.wire.path),
                {
                    **self._provider.headers,
                    **({"anthropic-version": "2023-06-01"} if protocol is Protocol.ANTHROPIC else {}),
                    **FIXED_HEADERS,
                },
                self._proxy,
            )
        content = json.dumps(body, separators=(",", ":")).encode()
        try:
            return target.post(headers, content)
        except ValueError as error:
            raise GatewayError(400, Code.VALIDATION_ERROR, f"the call to {self._provider.name} {error}") from error

    async def _reply(self, call: Call, head: Head, connection: HttpConnection, secrets: Sequence[str]) -> Reply:
        headers = head.headers
        if head.status != 200:
            body = await _error_body(connection, headers)
            raise status_error(self._provider.name, head.status, headers, body, secrets, self._clock.now())
        try:
            pieces = _Pieces(connection, headers)
            if "text/event-stream" in headers.get("content-type", "").lower():
                message = await self._streamed(call, pieces)
            else:
                message = self._whole(call, await _body(pieces, self._max_answer_bytes))
            call.wire.check(message)
            message = clean_answer(message, secrets)
        except StreamedError as error:
            raise streamed_error(self._provider.name, error, secrets) from error
        except UnknownCoding as error:
            raise unknown_coding(self._provider.name, str(error)) from error
        except BadCoding as error:
            raise bad_answer(self._provider.name, str(error)) from error
        except BadStream as error:
            raise bad_answer(self._provider.name, str(error), error.excerpt, secrets) from error
        except EventTooLarge as error:
            raise too_large(self._provider.name, self._max_answer_bytes) from error
        return Reply(message)

    async def _streamed(self, call: Call, pieces: _Pieces) -> Message:
        assembler, reader, size = call.wire.assembler(), EventReader(self._max_answer_bytes), 0
        try:
            while piece := await pieces.next():
                size += len(piece)
                for event in reader.feed(piece):
                    assembler.feed(event)
                if assembler.size > self._max_answer_bytes or size > self._max_answer_bytes * STREAM_OVERHEAD:
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
        assembler, reader = call.wire.assembler(), EventReader(self._max_answer_bytes)
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
