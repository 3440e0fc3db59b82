"""The gateway's errors: each has a status, a code from a closed list and a sentence.

    GatewayError
    └── UpstreamError     one try at the provider failed; says whether a retry may help and whether it may cost

`protocols` render them for each SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from runner.contract.run_spec import ErrorScope


class Code(StrEnum):
    """Why a call got no answer."""

    UNAUTHORIZED = "UNAUTHORIZED"  #: no token, or no live run has it
    FORBIDDEN = "FORBIDDEN"  #: the run may not call this provider or model
    NOT_FOUND = "NOT_FOUND"  #: no such provider here
    VALIDATION_ERROR = "VALIDATION_ERROR"  #: the request cannot be understood or carried out
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"  #: the request is larger than the gateway accepts
    CONFLICT = "CONFLICT"  #: the call key was already used for another request
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"  #: the worst case of this call no longer fits the run's budget
    PRICE_UNKNOWN = "PRICE_UNKNOWN"  #: the run has a budget but the model has no price
    COLLECTED = "COLLECTED"  #: the call waits for a batch of the provider; the run goes on when that has ended
    RATE_LIMITED = "RATE_LIMITED"  #: the provider kept answering "too many" until retries ran out
    EXTERNAL_API_ERROR = "EXTERNAL_API_ERROR"  #: the provider failed or refused; its own message is included
    PROVIDER_KEY_REFUSED = "PROVIDER_KEY_REFUSED"  #: the provider rejects the configured key
    INTERNAL_ERROR = "INTERNAL_ERROR"  #: a bug in the gateway; see its log
    UNAVAILABLE = "UNAVAILABLE"  #: the orchestrator cannot serve now (shutting down, no database)


SCOPES = {
    Code.FORBIDDEN: ErrorScope.RUN,
    Code.NOT_FOUND: ErrorScope.RUN,
    Code.PRICE_UNKNOWN: ErrorScope.RUN,
    Code.PROVIDER_KEY_REFUSED: ErrorScope.RUN,
    Code.PAYLOAD_TOO_LARGE: ErrorScope.ITEM,
    Code.CONFLICT: ErrorScope.ITEM,
}
"""The scope of an error with this code, unless the error says otherwise."""


class GatewayError(Exception):
    """A call that ends without an answer. `scope` says whether every other call of the run would end the same way."""

    def __init__(
        self,
        status: int,
        code: Code,
        message: str,
        *,
        retry_after_s: float | None = None,
        scope: ErrorScope | None = None,
    ) -> None:
        super().__init__(message)
        self.scope = scope or SCOPES.get(code, ErrorScope.UNKNOWN)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s


class UpstreamError(GatewayError):
    """One try at the provider failed.

    `retry`: another try may help. `crowded`: the provider wants fewer calls. `maybe_billed`: the provider may have done the
    work all the same. `body` is the provider's own error object, for SDKs to read.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        retry: bool,
        code: Code = Code.EXTERNAL_API_ERROR,
        crowded: bool = False,
        maybe_billed: bool = False,
        retry_after_s: float | None = None,
        body: Mapping[str, Any] | None = None,
        scope: ErrorScope | None = None,
    ) -> None:
        super().__init__(status, code, message, retry_after_s=retry_after_s, scope=scope)
        self.retry = retry
        self.crowded = crowded
        self.maybe_billed = maybe_billed
        self.body = body
