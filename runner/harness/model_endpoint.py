"""Answers the model calls of a harness through the gateway, in place of the provider's own server.

It gives each call its key, asks for the run's model whatever the harness calls it, and repeats a call while the gateway is
unreachable. The harness has a key that is valid here and nowhere else, and reaches nothing but this endpoint.
"""

import asyncio
import hashlib
import hmac
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from runner.contract.run_spec import CALL_KEY_HEADER, ModelSpec, Protocol, RunSpec
from runner.errors import BudgetExhausted, CallError, GatewayAway, PriceUnknown, ProviderFailed
from runner.harness.call_keys import DELIVERY_FIELDS, CallNumbers, key_of, question_digest
from runner.harness.http_server import Reply, Request
from runner.llm.client import SILENCE_S, error_for
from runner.log import Log
from runner.process.boot import SOCKET_OPTIONS

MAX_BODY_BYTES = 16 << 20
MAX_CALLS = 1_000_000
MAX_PAUSE_S = 10.0
SLOW_S = 20.0
ROUNDS, ROUND_S = 10, 0.005
"""How long a question waits that is already being asked: a client that closed its connection to ask again is noticed first,
and the new request takes over its call."""
ALIAS = "benchyard"
QUESTION_HEADERS = ("anthropic-version", "anthropic-beta")
FORWARDED = ("content-type", "x-should-retry", "retry-after")
PATHS = {
    "/v1/chat/completions": Protocol.OPENAI_CHAT,
    "/v1/responses": Protocol.OPENAI_RESPONSES,
    "/v1/messages": Protocol.ANTHROPIC,
}
OPENAI = frozenset({Protocol.OPENAI_CHAT, Protocol.OPENAI_RESPONSES})
LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
LIMIT_OF = {
    Protocol.OPENAI_CHAT: "max_completion_tokens",
    Protocol.OPENAI_RESPONSES: "max_output_tokens",
    Protocol.ANTHROPIC: "max_tokens",
}


def harness_key(run_token: str) -> str:
    """The key that the harness gets. It is derived from the run's token, which cannot be found from it."""
    return "harness-" + hmac.new(run_token.encode(), b"harness", hashlib.sha256).hexdigest()


def variables(port: int, key: str, model: ModelSpec) -> dict[str, str]:
    """The variables by which SDKs and harnesses find the endpoint, their key and their model."""
    url = f"http://127.0.0.1:{port}"
    inspect_model = f"anthropic/{model.name}" if model.protocol is Protocol.ANTHROPIC else f"openai-api/{ALIAS}/{model.name}"
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "OPENAI_API_KEY": key,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_AUTH_TOKEN": key,
        "BENCHYARD_BASE_URL": f"{url}/v1",
        "BENCHYARD_API_KEY": key,
        "BENCHYARD_MODEL": model.name,
        "BENCHYARD_PROTOCOL": model.protocol.value,
        "INSPECT_EVAL_MODEL": inspect_model,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


@dataclass(frozen=True)
class _Refusal(Exception):
    status: int
    code: str
    message: str


class ModelEndpoint:
    """`on_end` is called with the error that makes every further call pointless, such as an exhausted budget."""

    def __init__(
        self,
        spec: RunSpec,
        log: Log,
        *,
        on_end: Callable[[CallError], None],
        changed: Callable[[], None] = lambda: None,
        max_calls: int = MAX_CALLS,
        max_pause_s: float = MAX_PAUSE_S,
    ) -> None:
        self._model, self._log, self._on_end, self._changed = spec.model, log, on_end, changed
        self._key = harness_key(spec.run_token)
        self._url = f"{spec.gateway_url.rstrip('/')}/{spec.model.provider}"
        self._numbers = CallNumbers()
        self._room = asyncio.Semaphore(spec.concurrency)
        self._max_calls, self._max_pause_s = max_calls, max_pause_s
        self._trouble: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._calls = 0
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {spec.run_token}"},
            timeout=httpx.Timeout(SILENCE_S, pool=None),
            transport=httpx.AsyncHTTPTransport(
                trust_env=False, socket_options=SOCKET_OPTIONS, limits=httpx.Limits(max_connections=None)
            ),
            trust_env=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def answer(self, request: Request) -> Reply:
        protocol = PATHS.get(request.path, self._model.protocol)
        try:
            return await self._answer(request)
        except _Refusal as refusal:
            return Reply(refusal.status, _error_body(protocol, refusal), {"x-should-retry": "false"})

    async def _answer(self, request: Request) -> Reply:
        self._check_key(request.headers)
        if request.method == "GET" and request.path == "/v1/models":
            return Reply(200, json.dumps(_model_list(self._model)).encode())
        protocol = PATHS.get(request.path) if request.method == "POST" else None
        if protocol is None:
            raise _Refusal(
                404, "NOT_FOUND", f"there is no {request.method} {request.path} here, only POST {', '.join(PATHS)}"
            )
        if request.too_large:
            raise _Refusal(413, "PAYLOAD_TOO_LARGE", f"the request is larger than {MAX_BODY_BYTES} bytes")
        self._check_protocol(protocol)
        body = self._body(request.body, protocol)
        headers = {name: request.headers[name] for name in QUESTION_HEADERS if name in request.headers}
        digest = question_digest(request.path, body, headers)
        for _ in range(ROUNDS if self._numbers.under_way(digest) else 0):
            await asyncio.sleep(ROUND_S)
        number = self._numbers.take(digest, repeated=request.headers.get("x-stainless-retry-count", "0") not in ("", "0"))
        try:
            answer = await self._asked(key_of(digest, number), request.path, body, headers)
        except BaseException:
            self._numbers.released(digest, number)
            raise
        if not answer.is_success:
            self._numbers.released(digest, number)
            return Reply(answer.status_code, answer.content, _forwarded(answer.headers))
        return Reply(
            200,
            answer.content,
            _forwarded(answer.headers),
            delivered=lambda: self._numbers.delivered(digest, number),
            lost=lambda: self._numbers.released(digest, number),
        )

    def _check_key(self, headers: Mapping[str, str]) -> None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else ""
        if not any(hmac.compare_digest(text.encode(), self._key.encode()) for text in (given, headers.get("x-api-key", ""))):
            raise _Refusal(401, "UNAUTHORIZED", "the key must be the one in OPENAI_API_KEY or ANTHROPIC_API_KEY")

    def _check_protocol(self, protocol: Protocol) -> None:
        own = self._model.protocol
        if protocol is own or (protocol in OPENAI and own in OPENAI):
            return
        path = next(path for path, name in PATHS.items() if name is own)
        raise _Refusal(
            400, "VALIDATION_ERROR", f"{self._model.slug} speaks another protocol: ask it by POST {path} ({own.value})"
        )

    def _body(self, raw: bytes, protocol: Protocol) -> dict[str, Any]:
        """The request for the run's model, with the model's own limit of output tokens where the harness gives none."""
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise _Refusal(400, "VALIDATION_ERROR", "the request body is not a JSON object")
        names = {self._model.name, self._model.slug, ALIAS}
        if body.get("model") not in names:
            raise _Refusal(
                404,
                "NOT_FOUND",
                f"this run measures {self._model.name}: ask for the model by that name (it is in BENCHYARD_MODEL) or as "
                f"{ALIAS}, not as {str(body.get('model'))[:100]!r}",
            )
        limited = any(body.get(name) is not None for name in LIMITS)
        limit = {} if limited else {LIMIT_OF[protocol]: self._model.max_tokens}
        return {**body, **limit, "model": self._model.name}

    async def _asked(self, key: str, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> httpx.Response:
        """The gateway's answer: a success, or an error that no repetition would change.

        A streamed answer is first waited for as a whole, so that an outage cannot cut the stream; then it is replayed.
        """
        if self._calls >= self._max_calls:
            raise _Refusal(429, "RATE_LIMITED", f"a run may make {self._max_calls} calls")
        self._calls += 1
        whole = {name: value for name, value in body.items() if name not in DELIVERY_FIELDS}
        sent = {**headers, CALL_KEY_HEADER: key, "content-type": "application/json"}
        async with self._room:
            self._since[key] = time.monotonic()
            try:
                answer = await self._patiently(key, f"{self._url}{path}", json.dumps(whole).encode(), sent)
                if answer.is_success and body.get("stream") is True:
                    answer = await self._patiently(key, f"{self._url}{path}", json.dumps(body).encode(), sent)
                return answer
            finally:
                self._since.pop(key, None)
                if self._trouble.pop(key, None) and not self._trouble:
                    self._changed()

    async def _patiently(self, key: str, url: str, content: bytes, headers: dict[str, str]) -> httpx.Response:
        failures = 0
        while True:
            try:
                answer = await self._client.post(url, content=content, headers=headers)
                if answer.is_success:
                    return answer
                error = error_for(answer.status_code, _parsed(answer.content), answer.headers, answer.text[:300])
                if not isinstance(error, GatewayAway):
                    self._note(error)
                    return answer
            except httpx.ReadTimeout:
                continue  # the gateway still waits for the provider; the same key joins that call
            except httpx.HTTPError as failure:
                error = GatewayAway(f"{type(failure).__name__}: {failure}")
            failures += 1
            pause = min(0.2 * 2 ** min(failures, 10), self._max_pause_s) * random.uniform(0.7, 1.3)
            self._log("call.again", call=key, trouble=str(error), tries=failures)
            if not self._trouble:
                self._changed()
            self._trouble[key] = str(error)
            await asyncio.sleep(max(pause, min(error.retry_after_s or 0.0, 60.0)))

    def _note(self, error: CallError) -> None:
        hopeless = isinstance(error, ProviderFailed) and error.hopeless
        self._log("call.failed", trouble=str(error), hopeless=hopeless)
        if isinstance(error, BudgetExhausted | PriceUnknown) or hopeless:
            self._on_end(error)

    @property
    def waiting_for(self) -> str | None:
        """What the calls wait for, in words; None if for nothing unusual."""
        if self._trouble:
            return f"the gateway, {len(self._trouble)} calls are tried again: {next(iter(self._trouble.values()))}"[:300]
        if not self._since:
            return None
        longest = time.monotonic() - min(self._since.values())
        return f"the model, {len(self._since)} calls, the longest for {longest:.0f} s" if longest > SLOW_S else None


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in FORWARDED if name in headers}


def _model_list(model: ModelSpec) -> dict[str, Any]:
    names = dict.fromkeys((model.name, ALIAS))
    return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": ALIAS} for name in names]}


def _error_body(protocol: Protocol, refusal: _Refusal) -> bytes:
    kind = "not_found_error" if refusal.status == 404 else "invalid_request_error"
    inner = {"type": kind, "message": refusal.message, "code": refusal.code, "param": None}
    return json.dumps({"type": "error", "error": inner} if protocol is Protocol.ANTHROPIC else {"error": inner}).encode()
