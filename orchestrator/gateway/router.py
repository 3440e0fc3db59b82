"""The HTTP edge of the gateway: who is it, what is asked, and the answer in the form of the SDK that asks.

An answer is stored before the first byte of it goes out, and a stream is made from the stored answer. While a streamed
call takes long, the stream begins early and is kept alive; an error then comes inside the stream instead of as a status.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from orchestrator.gateway.admission import admit, parse_body
from orchestrator.gateway.calls import Answered, Call
from orchestrator.gateway.context import RunContext
from orchestrator.gateway.desk import CallDesk
from orchestrator.gateway.errors import Code, GatewayError
from orchestrator.gateway.wires.anthropic_messages import AnthropicMessages
from orchestrator.gateway.wires.openai_chat import OpenAIChat
from orchestrator.gateway.wires.openai_responses import OpenAIResponses
from orchestrator.gateway.wires.wire import Wire

CODE_HEADER = "x-benchyard-code"
REPLAYED_HEADER = "x-benchyard-replayed"
FINISH_HEADER = "x-benchyard-finish"
QUEUE_HEADER = "x-benchyard-queue-s"
PROVIDER_HEADER = "x-benchyard-provider-s"
EVENT_STREAM = "text/event-stream; charset=utf-8"
WIRES: tuple[Wire, ...] = (AnthropicMessages(), OpenAIChat(), OpenAIResponses())


@dataclass(frozen=True)
class GatewayDeps:
    """What the edge needs. `authenticate` turns a run token into its run, or None when no living run has it; `forget` is
    told that a run has changed."""

    authenticate: Callable[[str], Awaitable[RunContext | None]]
    desk: CallDesk
    forget: Callable[[str], None] = lambda run_id: None
    max_body_bytes: int = 16 << 20
    patience_s: float = 20.0
    ping_s: float = 10.0


def gateway_router(deps: GatewayDeps) -> APIRouter:
    """The routes `/gateway/{provider}/v1/...`, one per protocol."""
    router = APIRouter(prefix="/gateway", include_in_schema=False)
    for wire in WIRES:
        router.add_api_route(f"/{{provider}}{wire.path}", _endpoint(deps, wire), methods=["POST"])
    return router


def _endpoint(deps: GatewayDeps, wire: Wire) -> Callable[[Request, str], Awaitable[Response]]:
    async def endpoint(request: Request, provider: str) -> Response:
        try:
            context = await _caller(deps, request)
            body = parse_body(await _read_capped(request, deps.max_body_bytes))
            call = admit(context, provider, wire, dict(request.headers), body)
            if call.asked.stream:
                return await _streamed(deps, call)
            answered = await deps.desk.answer(call)
            content = json.dumps(answered.settlement.message).encode()
            return Response(content, media_type="application/json", headers=_facts(answered))
        except GatewayError as error:
            return _error_response(wire, error)
        except ClientDisconnect:
            return Response(status_code=400)  # it hung up before it had asked; nobody reads this

    return endpoint


async def _caller(deps: GatewayDeps, request: Request) -> RunContext:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        token = request.headers.get("x-api-key", "")
    context = await deps.authenticate(token.strip()) if token.strip() else None
    if context is None:
        raise GatewayError(401, Code.UNAUTHORIZED, "the key must be the token of a run that is running")
    return context


async def _read_capped(request: Request, max_bytes: int) -> bytes:
    received = bytearray()
    async for piece in request.stream():
        received += piece
        if len(received) > max_bytes:
            raise GatewayError(413, Code.PAYLOAD_TOO_LARGE, f"the request is larger than {max_bytes} bytes")
    return bytes(received)


async def _streamed(deps: GatewayDeps, call: Call) -> Response:
    asking = asyncio.ensure_future(deps.desk.answer(call))
    try:
        await asyncio.wait({asking}, timeout=deps.patience_s)
    except asyncio.CancelledError:
        asking.cancel()
        raise
    if not asking.done():
        return StreamingResponse(_late_stream(deps, call, asking), media_type=EVENT_STREAM)
    answered = asking.result()
    return Response(_whole_stream(call, answered), media_type=EVENT_STREAM, headers=_facts(answered))


async def _late_stream(deps: GatewayDeps, call: Call, asking: asyncio.Future[Answered]) -> AsyncIterator[bytes]:
    try:
        while not asking.done():
            yield call.wire.ping()
            await asyncio.wait({asking}, timeout=deps.ping_s)
        yield _whole_stream(call, asking.result())
    except GatewayError as error:
        yield call.wire.error_event(error)
    finally:
        # The asker may be gone; the call goes on, and `desk` records how it ends.
        asking.add_done_callback(lambda done: done.cancelled() or done.exception())
        asking.cancel()


def _whole_stream(call: Call, answered: Answered) -> bytes:
    return b"".join(call.wire.stream(answered.settlement.message, call.body))


def _facts(answered: Answered) -> dict[str, str]:
    settlement = answered.settlement
    facts = {
        FINISH_HEADER: settlement.finish.value,
        QUEUE_HEADER: f"{settlement.queue_s:.3f}",
        PROVIDER_HEADER: f"{settlement.provider_s:.3f}",
    }
    return facts | {REPLAYED_HEADER: "1"} if answered.replayed else facts


def _error_response(wire: Wire, error: GatewayError) -> Response:
    """The gateway has done all the retrying: SDKs are told to leave it at that, unless the gateway itself was away."""
    headers = {CODE_HEADER: error.code.value, "x-should-retry": "true" if error.status == 503 else "false"}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after_s))
    body = json.dumps(wire.error_body(error)).encode()
    return Response(body, status_code=error.status, media_type="application/json", headers=headers)
