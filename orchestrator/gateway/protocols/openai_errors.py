"""Errors in OpenAI's format, shared by its two protocols."""

from __future__ import annotations

from orchestrator.gateway.edge.errors import Code, GatewayError, UpstreamError
from orchestrator.gateway.protocols.protocol import Message

_ERROR_TYPE = {
    Code.UNAUTHORIZED: "invalid_request_error",
    Code.PROVIDER_KEY_REFUSED: "invalid_request_error",
    Code.FORBIDDEN: "invalid_request_error",
    Code.NOT_FOUND: "invalid_request_error",
    Code.VALIDATION_ERROR: "invalid_request_error",
    Code.CONFLICT: "invalid_request_error",
    Code.PAYLOAD_TOO_LARGE: "invalid_request_error",
    Code.BUDGET_EXHAUSTED: "insufficient_quota",
    Code.PRICE_UNKNOWN: "insufficient_quota",
    Code.RATE_LIMITED: "rate_limit_exceeded",
}


def error_body(error: GatewayError) -> Message:
    own = error.body if isinstance(error, UpstreamError) else None
    standard = {"type": _ERROR_TYPE.get(error.code, "server_error"), "param": None, "code": error.code}
    details = {"error_code": error.code, "scope": error.scope}
    return {"error": {**standard, **(own or {}), "message": error.message, "details": details}, "code": error.code}


def told_in_stream(error: GatewayError) -> Message:
    """SDKs keep only the inner object of an error in a stream, so that everything must be in it."""
    body = error_body(error)
    body["error"]["status"] = error.status
    return body
