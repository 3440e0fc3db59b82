"""The HTTP edge of the gateway: authenticates the run, reads the request, and answers in the format of the calling SDK.

An answer is stored before its first byte goes out, and a stream is made from the stored answer. If a streamed call takes
long, the stream begins early and is kept alive; an error then arrives inside the stream instead of as a status.

Run tokens are cached for about a second and refreshed in the background, so that a busy caller does not wait for the
look-up. A stale entry is harmless: the ledger neither opens nor answers a call unless the attempt is still the run's current
one.

This is a plain ASGI application, because a framework's overhead would exceed the handler's own work.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.db.session import DatabaseUnavailable
from orchestrator.gateway.calls import Call, CallResult, RunContext, Source
from orchestrator.gateway.coordinator import CallCoordinator, Waiter
from orchestrator.gateway.edge.call_checks import admit, parse_body
from orchestrator.gateway.edge.errors import Code, GatewayError
from orchestrator.gateway.protocols.anthropic_messages import AnthropicMessages
from orchestrator.gateway.protocols.openai_chat import OpenAIChat
from orchestrator.gateway.protocols.openai_responses import OpenAIResponses
from orchestrator.gateway.protocols.protocol import Wire
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import token_hash

log = structlog.get_logger()

CODE_HEADER = "x-benchyard-code"
REPLAYED_HEADER = "x-benchyard-replayed"
SOURCE_HEADER = "x-benchyard-source"
FINISH_HEADER = "x-benchyard-finish"
QUEUE_HEADER = "x-benchyard-queue-s"
PROVIDER_HEADER = "x-benchyard-provider-s"
EVENT_STREAM = "text/event-stream; charset=utf-8"
JSON = "application/json"
WIRES: tuple[Wire, ...] = (AnthropicMessages(), OpenAIChat(), OpenAIResponses())
_WIRE_OF = {wire.path: wire for wire in WIRES}
_PLACE = re.compile(f"/gateway/([^/]+)({'|'.join(re.escape(path) for path in _WIRE_OF)})")


@dataclass(frozen=True)
class GatewayDeps:
    """What the edge needs. `authenticate` returns the live run of a token, or None; `forget` is called when a run has
    changed."""

    authenticate: Callable[[str], Awaitable[RunContext | None]]
    coordinator: CallCoordinator
    forget: Callable[[str], None] = lambda run_id: None
    max_body_bytes: int = 16 << 20
    patience_s: float = 20.0
    ping_s: float = 10.0


@dataclass(frozen=True)
class _Exchange:
    scope: Scope
    receive: Receive
    send: Send


class _ClientGone(Exception):
    """The client disconnected before its request was complete."""


class Gateway:
    """Answers `POST /gateway/{provider}/v1/...`, one path per protocol; everything else goes to `others`."""

    def __init__(self, deps: GatewayDeps, others: ASGIApp) -> None:
        self._deps = deps
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = _PLACE.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if match is None:
            await self._others(scope, receive, send)
            return
        wire = _WIRE_OF[match[2]]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            await self._serve(_Exchange(scope, receive, send), match[1], wire, headers)
        except GatewayError as error:
            await _send_error(send, wire, error)
        except _ClientGone:
            return
        except DatabaseUnavailable as error:
            sentence = f"the database cannot be used now: {error}"
            await _send_error(send, wire, GatewayError(503, Code.UNAVAILABLE, sentence, retry_after_s=2))
        except Exception as error:
            log.error("unexpected error", action="internal_error", exc_info=error)
            await _send_error(send, wire, GatewayError(500, Code.INTERNAL_ERROR, "the gateway broke; its log says how"))

    async def _serve(self, exchange: _Exchange, provider: str, wire: Wire, headers: Mapping[str, str]) -> None:
        context = await self._caller(headers)
        raw = await _read_capped(exchange.receive, self._deps.max_body_bytes)
        call = admit(context, provider, wire, headers, parse_body(raw), len(raw))
        if not call.request.stream:
            answer = await self._deps.coordinator.answer(call)
            content = json.dumps(answer.settlement.message).encode()
            await _send(exchange.send, 200, JSON, _facts(answer), content)
            return
        waiter = self._deps.coordinator.ask(call)
        in_time = await waiter.within(self._deps.patience_s)
        if in_time is not None:
            await _send(exchange.send, 200, EVENT_STREAM, _facts(in_time), _whole_stream(call, in_time))
            return
        late = StreamingResponse(_late_stream(self._deps.ping_s, call, waiter), media_type=EVENT_STREAM)
        await late(exchange.scope, exchange.receive, exchange.send)

    async def _caller(self, headers: Mapping[str, str]) -> RunContext:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            token = headers.get("x-api-key", "")
        context = await self._deps.authenticate(token.strip()) if token.strip() else None
        if context is None:
            raise GatewayError(401, Code.UNAUTHORIZED, "the key must be the token of a run that is running")
        return context


async def _read_capped(receive: Receive, max_bytes: int) -> bytes:
    received = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientGone
        received += message.get("body", b"")
        if len(received) > max_bytes:
            raise GatewayError(413, Code.PAYLOAD_TOO_LARGE, f"the request is larger than {max_bytes} bytes")
        if not message.get("more_body", False):
            return bytes(received)


async def _late_stream(ping_s: float, call: Call, waiter: Waiter) -> AsyncIterator[bytes]:
    answer = None
    try:
        while answer is None:
            yield call.wire.ping()
            answer = await waiter.within(ping_s)
        yield _whole_stream(call, answer)
    except GatewayError as error:
        yield call.wire.error_event(error)


def _whole_stream(call: Call, answer: CallResult) -> bytes:
    return b"".join(call.wire.stream(answer.settlement.message, call.body))


def _facts(answer: CallResult) -> dict[str, str]:
    settlement = answer.settlement
    facts = {
        SOURCE_HEADER: answer.source.value,
        FINISH_HEADER: settlement.finish.value,
        QUEUE_HEADER: f"{settlement.queue_s:.3f}",
        PROVIDER_HEADER: f"{settlement.provider_s:.3f}",
    }
    return facts if answer.source is Source.BOUGHT else facts | {REPLAYED_HEADER: "1"}


async def _send_error(send: Send, wire: Wire, error: GatewayError) -> None:
    """The gateway has done all retrying, so SDKs are told not to retry, unless the gateway itself was unavailable."""
    headers = {CODE_HEADER: error.code.value, "x-should-retry": "true" if error.status == 503 else "false"}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after_s))
    await _send(send, error.status, JSON, headers, json.dumps(wire.error_body(error)).encode())


async def _send(send: Send, status: int, media_type: str, headers: Mapping[str, str], content: bytes) -> None:
    everything = {"content-type": media_type, "content-length": str(len(content)), **headers}
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in everything.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})


BELIEVED_S = 1.0
FRESH_S = 0.5
MANY = 1000

Find = Callable[[str], Awaitable[RunContext | None]]


@dataclass
class _CachedCaller:
    context: RunContext
    fresh_until: float
    until: float


class Callers:
    """Caches which live run a token belongs to. `find` looks the run up by the token's hash."""

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._cache: dict[str, _CachedCaller] = {}
        self._asking: dict[str, asyncio.Task[RunContext | None]] = {}
        self._forgotten = 0

    async def authenticate(self, token: str) -> RunContext | None:
        digest = token_hash(token)
        now = self._clock.monotonic()
        caller = self._cache.get(digest)
        if caller is None or caller.until <= now:
            return await asyncio.shield(self._ask(digest))
        if caller.fresh_until <= now:
            self._ask(digest)
        return caller.context

    def _ask(self, digest: str) -> asyncio.Task[RunContext | None]:
        """The look-up that is under way, or a new one: hundreds of calls may need the same at once."""
        asking = self._asking.get(digest)
        if asking is None:
            asking = self._asking[digest] = asyncio.get_running_loop().create_task(self._look_up(digest, self._asking))
            asking.add_done_callback(_ignore_failure)
        return asking

    async def _look_up(self, digest: str, asking: dict[str, asyncio.Task[RunContext | None]]) -> RunContext | None:
        now, forgotten = self._clock.monotonic(), self._forgotten
        try:
            context = await self._find(digest)
        finally:
            asking.pop(digest, None)
        self._cache.pop(digest, None)
        if context is not None and forgotten == self._forgotten:  # otherwise the result may predate a change
            if len(self._cache) >= MANY:
                self._cache.clear()
            self._cache[digest] = _CachedCaller(context, now + FRESH_S, now + BELIEVED_S)
        return context

    def forget(self, run_id: str) -> None:
        """Drop what is cached of a run that has changed."""
        self._forgotten += 1
        self._asking = {}  # nobody joins a look-up that began before the change
        self._cache = {digest: caller for digest, caller in self._cache.items() if caller.context.run_id != run_id}


def _ignore_failure(asking: asyncio.Task[RunContext | None]) -> None:
    """Ignore a failed background refresh: the next call that needs the run looks it up again."""
    if not asking.cancelled():
        asking.exception()
