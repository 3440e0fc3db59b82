"""Classifies failed tries: whether to retry, whether to slow down, whether it may have been billed. Pure; removes keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestrator.gateway.edge.errors import Code, UpstreamError
from orchestrator.gateway.pacing.retry import CROWDED_STATUSES, exhausted_for_s, retried, retry_after_s
from orchestrator.gateway.protocols.protocol import StreamedError
from orchestrator.gateway.upstream.connections.connection import ConnectFailed, ReceiveTimeout
from orchestrator.gateway.upstream.connections.framing import BadResponse
from orchestrator.gateway.upstream.error_scope import scope_of
from orchestrator.gateway.upstream.secrets.scrubbing import scrubbed, storable
from runner.contract.run_spec import ErrorScope

OUT_OF_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"})
MAX_MESSAGE_CHARS = 2000
_STATUS_OF_KIND = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "context_length_exceeded": 400,
}


def status_error(
    provider: str, status: int, headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: datetime
) -> UpstreamError:
    """The provider answered with an error status."""
    if status < 400:
        where = " to another address" if 300 <= status < 400 else ""
        message = f"{provider} answered {status}{where}, which is not followed"
        return UpstreamError(502, message, retry=False, scope=ErrorScope.RUN)
    error = _error_object(body.decode("utf-8-sig", "replace"), secrets)
    wait_s = retry_after_s(headers, now)
    if wait_s is None and status == 429:
        wait_s = exhausted_for_s(headers, now)
    return _judged(provider, status, error, wait_s, headers.get("x-should-retry"))


def streamed_error(provider: str, error: StreamedError, secrets: Sequence[str]) -> UpstreamError:
    """The provider answered 200 and then sent an error; it had begun, so the try may have cost something."""
    status = _status_of(error.kind) or _status_of(str(error.body.get("type"))) or 500
    return _judged(provider, status, scrubbed(dict(error.body), secrets), None, None, maybe_billed=True)


def _status_of(kind: str) -> int | None:
    if kind.isdecimal() and 400 <= int(kind) < 600:
        return int(kind)
    return _STATUS_OF_KIND.get(kind)


def transport_error(provider: str, error: Exception) -> UpstreamError:
    """No answer, or only part of it. What never reached the provider cannot have cost anything."""
    if isinstance(error, ConnectFailed):
        message = f"{provider} cannot be reached: {error}"
        return UpstreamError(502, message, retry=not error.lasting, scope=ErrorScope.RUN)
    if isinstance(error, ReceiveTimeout | TimeoutError):
        return UpstreamError(504, f"{provider} did not answer in time", retry=True, maybe_billed=True)
    if isinstance(error, BadResponse):
        return bad_answer(provider, str(error))
    return UpstreamError(502, f"the connection to {provider} broke: {error}", retry=True, maybe_billed=True)


def bad_answer(provider: str, why: str, excerpt: str = "", secrets: Sequence[str] = ()) -> UpstreamError:
    """The answer cannot be understood. `excerpt` is truncated after scrubbing: half a key would not be recognised."""
    words = f": {scrubbed(excerpt, secrets)[:200]!r}" if excerpt else ""
    message = f"the answer of {provider} is unusable: {scrubbed(why, secrets)}{words}"
    return UpstreamError(502, storable(message), retry=True, maybe_billed=True)


def unknown_coding(provider: str, why: str) -> UpstreamError:
    """Not retried: the next answer would have the same encoding."""
    return UpstreamError(502, f"the answer of {provider} is unusable: {why}", retry=False, maybe_billed=True)


def too_large(provider: str, max_bytes: int) -> UpstreamError:
    """Not retried: it would only buy the same answer again."""
    return UpstreamError(502, f"the answer of {provider} is larger than {max_bytes} bytes", retry=False, maybe_billed=True)


def _judged(
    provider: str,
    status: int,
    error: Mapping[str, Any],
    wait_s: float | None,
    should_retry: str | None,
    *,
    maybe_billed: bool = False,
) -> UpstreamError:
    broke = status == 402 or bool(OUT_OF_CREDIT & {str(error.get("code")), str(error.get("type"))})
    crowded = status in CROWDED_STATUSES and not broke
    retry = (retried(status) or should_retry == "true") and should_retry != "false" and not broke
    code = Code.EXTERNAL_API_ERROR
    if status in (401, 403) or broke:
        code = Code.PROVIDER_KEY_REFUSED
    elif status == 429:
        code = Code.RATE_LIMITED
    # 402 is the gateway's own status for a run's budget; an account without credit is the operator's problem.
    status_shown = 403 if broke else status
    message = f"{provider} answered {status}: {error.get('message') or 'no reason given'}"
    return UpstreamError(
        status_shown,
        storable(message[:MAX_MESSAGE_CHARS]),
        retry=retry,
        code=code,
        crowded=crowded,
        maybe_billed=maybe_billed,
        retry_after_s=wait_s,
        body={name: value for name, value in error.items() if name != "message"},
        scope=ErrorScope.RUN if broke else scope_of(status, error),
    )


def _error_object(text: str, secrets: Sequence[str]) -> dict[str, Any]:
    """The error object in a provider's body, in any of the usual shapes, without secrets."""
    try:
        body = scrubbed(json.loads(text), secrets)
    except (ValueError, RecursionError):
        return {"message": scrubbed(" ".join(text.split()), secrets)[:300]}
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        return dict(error)
    return {"message": str(error)[:300]}
