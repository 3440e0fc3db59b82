"""Applies to every request: a request id, a body limit, a deadline, security headers. Plain ASGI."""

from __future__ import annotations

import asyncio
import secrets

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.errors import ClientError, Code, ServiceError, TookTooLong, TooLarge, TooSlow
from orchestrator.http.problems import render
from orchestrator.http.route_table import RouteTable

CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}
_RAW_SECURITY_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


class UnsupportedEncoding(ClientError):
    status, code, title = 415, Code.VALIDATION_ERROR, "Encoding not supported"


class Guard:
    """Wraps an application whose routes are in `routes`: finds the route of a request and enforces its body limit and
    deadline."""

    def __init__(self, app: ASGIApp, *, routes: RouteTable) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        scope["benchyard.request_id"] = request_id
        match = self._routes.apply(scope)
        headers = Headers(scope=scope)
        exchange = _Exchange(receive, send, match.body_cap, request_id, has_body=_has_body(headers))
        try:
            encoding = headers.get("content-encoding", "identity").strip().lower()
            if encoding not in ("identity", ""):
                raise UnsupportedEncoding(f"bodies with Content-Encoding {encoding[:20]} are not accepted; send plain JSON")
            exchange.check_length(headers.get("content-length"))
            if match.deadline_s is None:
                await self._app(scope, exchange.receive, exchange.send)
            else:
                async with asyncio.timeout(match.deadline_s):
                    await self._app(scope, exchange.receive, exchange.send)
            if exchange.refusal is not None:  # the application mistook the refusal for a broken body
                await exchange.refuse(exchange.refusal, scope)
        except TimeoutError:
            error: ServiceError = TookTooLong("The request took too long and was given up; try again.")
            if exchange.awaits_body:
                error = TooSlow(f"The body was not whole after {match.deadline_s:g} s; send it faster, or less of it.")
            await exchange.refuse(error, scope)
        except ServiceError as error:
            await exchange.refuse(error, scope)


class _Exchange:
    def __init__(self, receive: Receive, send: Send, cap: int | None, request_id: str, *, has_body: bool) -> None:
        self._receive = receive
        self._send = send
        self._cap = cap
        self._request_id = request_id
        self._received = 0
        self._started = False
        self.awaits_body = has_body
        self.refusal: ServiceError | None = None

    def check_length(self, declared: str | None) -> None:
        if self._cap is not None and declared is not None and declared.isdecimal() and int(declared) > self._cap:
            raise self._too_large()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.awaits_body = message.get("more_body", False)
            self._received += len(message.get("body", b""))
            if self._cap is not None and self._received > self._cap:
                self.refusal = self._too_large()
                raise self.refusal
        return message

    async def send(self, message: Message) -> None:
        if self.refusal is not None and not self._started:
            return  # our refusal is sent instead
        if message["type"] == "http.response.start":
            self._started = True
            headers = message.get("headers", ())
            names = {name for name, _ in headers}
            message["headers"] = [
                *(header for header in headers if header[0] != b"x-request-id"),
                (b"x-request-id", self._request_id.encode()),
                *(header for header in _RAW_SECURITY_HEADERS if header[0] not in names),
            ]
        await self._send(message)

    async def refuse(self, error: ServiceError, scope: Scope) -> None:
        if self._started:
            raise error
        self.refusal = None
        response = render(error, self._request_id)
        response.headers["connection"] = "close"
        await response(scope, self._receive, self.send)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body is larger than {self._cap} bytes; send less")


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
