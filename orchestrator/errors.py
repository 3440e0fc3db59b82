"""Errors that reach a caller over HTTP: the caller's mistakes, and failures of the service.

    ServiceError
    +-- ClientError            the request must be changed
    |   +-- NotFound           404 NOT_FOUND
    |   +-- Invalid            422 VALIDATION_ERROR
    |   +-- TooFewExamples     422 INSUFFICIENT_EXAMPLES
    |   +-- BadCode            422 INVALID_CODE
    |   +-- Conflict           409 CONFLICT
    |   +-- Unauthorized       401 UNAUTHORIZED
    |   +-- Forbidden          403 FORBIDDEN
    |   +-- TooSlow            408 TIMEOUT
    |   +-- TooLarge           413 TOO_LARGE
    |   +-- RateLimited        429 RATE_LIMITED
    +-- ServerError            the request is fine, the service is not
        +-- Unavailable        503 UNAVAILABLE, with Retry-After
        |   +-- NoDatabase     503 DATABASE_ERROR, for evals, traces and jobs
        +-- TookTooLong        504 TIMEOUT
        +-- NoSpace            507 NO_SPACE

Each is rendered as RFC 9457 problem+json by `orchestrator.http.problems`; `detail` says what happened and what to do.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar


class Code(StrEnum):
    NOT_FOUND = "NOT_FOUND"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    CONFLICT = "CONFLICT"
    UNAUTHORIZED = "UNAUTHORIZED"
    FORBIDDEN = "FORBIDDEN"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    TOO_LARGE = "TOO_LARGE"
    RATE_LIMITED = "RATE_LIMITED"
    UNAVAILABLE = "UNAVAILABLE"
    TIMEOUT = "TIMEOUT"
    NO_SPACE = "NO_SPACE"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    EXTERNAL_API_ERROR = "EXTERNAL_API_ERROR"
    INSUFFICIENT_EXAMPLES = "INSUFFICIENT_EXAMPLES"
    DATABASE_ERROR = "DATABASE_ERROR"
    INVALID_CODE = "INVALID_CODE"
    EXECUTION_TIMEOUT = "EXECUTION_TIMEOUT"
    EXECUTION_ERROR = "EXECUTION_ERROR"


class ServiceError(Exception):
    """Base of all errors that are rendered as problem+json."""

    status: ClassVar[int] = 500
    code: ClassVar[Code] = Code.INTERNAL_ERROR
    title: ClassVar[str] = "Internal error"

    def __init__(self, detail: str, *, headers: dict[str, str] | None = None, **extra: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.headers = headers or {}
        self.extra = extra


class ClientError(ServiceError):
    status = 400


class NotFound(ClientError):
    status, code, title = 404, Code.NOT_FOUND, "Not found"


class Invalid(ClientError):
    status, code, title = 422, Code.VALIDATION_ERROR, "Request not valid"


class TooFewExamples(ClientError):
    status, code, title = 422, Code.INSUFFICIENT_EXAMPLES, "Too few labelled traces"


class BadCode(ClientError):
    status, code, title = 422, Code.INVALID_CODE, "Code not valid"


class Conflict(ClientError):
    status, code, title = 409, Code.CONFLICT, "Conflict"


class Unauthorized(ClientError):
    status, code, title = 401, Code.UNAUTHORIZED, "Not signed in"

    def __init__(self, detail: str) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": 'Bearer realm="benchyard"'})


class Forbidden(ClientError):
    status, code, title = 403, Code.FORBIDDEN, "Not allowed"


class TooSlow(ClientError):
    status, code, title = 408, Code.TIMEOUT, "Request too slow"


class TooLarge(ClientError):
    status, code, title = 413, Code.TOO_LARGE, "Body too large"


class RateLimited(ClientError):
    status, code, title = 429, Code.RATE_LIMITED, "Too many requests"

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})


class ServerError(ServiceError):
    status = 500


class Unavailable(ServerError):
    status, code, title = 503, Code.UNAVAILABLE, "Not available now"

    def __init__(self, detail: str, retry_after_s: int = 5) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})


class NoDatabase(Unavailable):
    code, title = Code.DATABASE_ERROR, "The database cannot be used now"


class TookTooLong(ServerError):
    status, code, title = 504, Code.TIMEOUT, "Took too long"


class NoSpace(ServerError):
    status, code, title = 507, Code.NO_SPACE, "Disk full"
