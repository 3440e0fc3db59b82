"""What a client raises.

BenchyardError
+-- ConnectionFailed    no answer: the service is not there, or the connection broke
+-- NotBenchyard        the answer is not one of Benchyard's
+-- StoreFailed         a file is in an object store, which did not give it
+-- WaitTimeout         what was waited for has not ended in time
+-- ApiError            the service refused; `status`, `code`, `sentence` and `request_id` say why
    +-- Unauthorized    401
    +-- Forbidden       403
    +-- NotFound        404
    +-- Conflict        409
    +-- Invalid         400, 413, 415, 422
    +-- RateLimited     429
    +-- Unavailable     503
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class BenchyardError(Exception):
    pass


class ConnectionFailed(BenchyardError):
    def __init__(self, url: str, why: str, *, sent: bool) -> None:
        super().__init__(f"No Benchyard answers at {url} ({why})." if why else f"No Benchyard answers at {url}.")
        self.url = url
        self.why = why
        self.sent = sent
        """The service may have received the request."""


class NotBenchyard(BenchyardError):
    def __init__(self, where: str, status: int) -> None:
        is_answer = 200 <= status < 300
        super().__init__(
            f"The server at {where} is not Benchyard."
            if is_answer
            else f"The server at {where} answered {status}: is it Benchyard?"
        )
        self.status = status


class StoreFailed(BenchyardError):
    """Names the host only: anybody with the signed address can download the file."""

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(f"The file is in the object store at {host}, which {problem}.")


class WaitTimeout(BenchyardError):
    pass


class ApiError(BenchyardError):
    def __init__(
        self, status: int, code: str, sentence: str, request_id: str | None, errors: Sequence[dict[str, Any]] = ()
    ) -> None:
        super().__init__(sentence if request_id is None else f"{sentence} (request {request_id})")
        self.status = status
        self.code = code
        self.sentence = sentence
        """What happened and what to do, in the service's words."""
        self.request_id = request_id
        """The service's log has this id."""
        self.errors = list(errors)
        """The fields that are wrong, if the service named them."""


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    pass


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    pass


class Invalid(ApiError):
    pass


class RateLimited(ApiError):
    pass


class Unavailable(ApiError):
    pass


BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: RateLimited,
    503: Unavailable,
}
