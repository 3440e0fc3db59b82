"""What a client does, step by step, written once for both flavours: retries, pages, streams that resume, waits.

A procedure is a generator. It yields an effect and is resumed with the effect's result, or with the error that it raised;
`flavours` has the two drivers that perform effects, one blocking, one asynchronous. Nothing here does input or output.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from orchestrator.client.errors import ApiError, BenchyardError, ConnectionFailed, NotBenchyard, WaitTimeout
from orchestrator.client.requests import STREAM_S, UPLOAD_S, Json, Reply, Request, read, refusal

T = TypeVar("T")
PAGE = 500
LONGEST_RETRY_AFTER_S = 60.0
"""A service that asks for more patience than this is not waited for."""
PATIENCE_S = 60.0
"""How long the service may be unreachable (a restart) while something is followed or waited for."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 3.0
TERMINAL = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True)
class Send:
    """Gives the `Reply`; raises `ConnectionFailed`."""

    request: Request[Any]


@dataclass(frozen=True)
class Open:
    """Opens an answer that is read in parts. Gives its `Reply`, whose body is read only if it is a refusal."""

    request: Request[Any]
    redirects: bool = False


@dataclass(frozen=True)
class NextEvent:
    """Gives the next `StreamEvent` of what is open, None at the end of the stream."""


@dataclass(frozen=True)
class NextPiece:
    """Gives the next bytes of what is open, None at the end."""


@dataclass(frozen=True)
class Close:
    """Closes what is open."""


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Now:
    """Gives seconds of a monotonic clock."""


@dataclass(frozen=True)
class Give:
    """Hands a value to the caller who iterates."""

    value: Any


Effect: TypeAlias = Send | Open | NextEvent | NextPiece | Close | Sleep | Now | Give
Steps: TypeAlias = Generator[Effect, Any, T]


@dataclass(frozen=True)
class StreamEvent:
    type: str
    data: Json = field(default_factory=dict)
    id: str | None = None

    @classmethod
    def of(cls, type_: str, data: str, id_: str) -> StreamEvent:
        try:
            value = json.loads(data)
        except ValueError:
            value = None
        return cls(type_, value if isinstance(value, dict) else {}, id_ or None)


@dataclass(frozen=True)
class Retry:
    """What is repeated when the service is away (no connection, 429, 503): nothing that it may have done already."""

    attempts: int = 4
    first_pause_s: float = 0.5
    longest_pause_s: float = 8.0

    def pause_s(self, attempt: int, retry_after: str | None) -> float | None:
        """None: give up."""
        if attempt >= self.attempts:
            return None
        try:
            asked_s = float(retry_after or 0)
        except ValueError:
            asked_s = 0.0
        if asked_s > LONGEST_RETRY_AFTER_S:
            return None
        longest_s: float = min(self.first_pause_s * 2**attempt, self.longest_pause_s)
        return asked_s + longest_s * random.uniform(0.5, 1)  # so that clients do not come back together


NEVER = Retry(attempts=0)


def exchange(request: Request[T], retry: Retry) -> Steps[T]:
    """One answer. A keyed request keeps its key when it is repeated, so its work is done once."""
    if request.keyed and "idempotency-key" not in request.headers:
        request = request.having(idempotency_key=str(uuid.uuid4()))
    attempt = 0
    while True:
        try:
            reply: Reply = yield Send(request)
        except ConnectionFailed as error:
            pause_s = retry.pause_s(attempt, None)
            if pause_s is None or (error.sent and not request.is_repeatable):
                raise
        else:
            retry_after = reply.headers.get("retry-after")
            is_busy = reply.status in (429, 503) and (retry_after is not None or request.is_repeatable)
            pause_s = retry.pause_s(attempt, retry_after) if is_busy else None
            if pause_s is None:
                return read(request, reply)
        yield Sleep(pause_s)
        attempt += 1


def pages(request: Request[Any], retry: Retry, *, limit: int | None = None, page: int = PAGE) -> Steps[None]:
    """Gives the items of a list, page by page, up to `limit`."""
    after, left = request.query.get("after"), limit
    while left is None or left > 0:
        size = page if left is None else min(page, left)
        answer = yield from exchange(request.asking(limit=size, after=after or None), retry)
        items, after = (answer["items"], answer.get("next")) if isinstance(answer, dict) else (answer.items, answer.next)
        for item in items:
            yield Give(item)
        if left is not None:
            left -= len(items)
        if not after or not items:
            return


def one_page(request: Request[Any], retry: Retry) -> Steps[None]:
    """Gives the items of a list that has one page."""
    answer = yield from exchange(request, retry)
    for item in answer["items"] if isinstance(answer, dict) else answer.items:
        yield Give(item)


class _Outage:
    """The service does not answer: how long that is borne, and how long the pauses are."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since_s: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def over(self) -> None:
        self._since_s, self._pause_s = None, FIRST_PAUSE_S

    def seen(self) -> None:
        """It answers; the pauses still grow."""
        self._since_s = None

    def goes_on(self, error: BenchyardError) -> Steps[None]:
        """Raises what is no outage, and what lasts too long."""
        is_outage = isinstance(error, ConnectionFailed) or (
            isinstance(error, ApiError | NotBenchyard) and error.status >= 500
        )
        if not is_outage:
            raise error
        now_s: float = yield Now()
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s - self._since_s > self._patience_s:
            raise error

    def pause(self) -> Steps[None]:
        yield Sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)


def follow(
    path: str, state: Request[Any] | None, *, after: str | None = None, patience_s: float = PATIENCE_S
) -> Steps[None]:
    """Gives every event of the stream at `path` exactly once; a broken connection is resumed after the last event.

    Ends with the event `end`, or when `state` says that the run has ended; without `state` it never ends.
    """
    outage, last = _Outage(patience_s), after
    while True:
        request: Request[Any] = Request("GET", path, timeout_s=STREAM_S)
        try:
            reply: Reply = yield Open(request if last is None else request.having(last_event_id=last))
            if reply.status != 200:
                raise refusal(reply)
            while (event := (yield NextEvent())) is not None:
                outage.over()
                last = last if event.id is None else event.id
                if event.type == "end":
                    yield Close()
                    return
                yield Give(event)
            yield Close()
            if state is not None and _status((yield from exchange(state, NEVER))) in TERMINAL:
                return
            outage.seen()
        except BenchyardError as error:
            yield from outage.goes_on(error)
        yield from outage.pause()


def wait(
    state: Request[T], is_over: Callable[[T], bool], *, timeout_s: float | None, patience_s: float = PATIENCE_S
) -> Steps[T]:
    """Asks until it is over. Raises `WaitTimeout` after `timeout_s`."""
    outage = _Outage(patience_s)
    start_s: float = yield Now()
    while True:
        try:
            answer = yield from exchange(state, NEVER)
            if is_over(answer):
                return answer
            outage.seen()
        except BenchyardError as error:
            yield from outage.goes_on(error)
        now_s: float = yield Now()
        if timeout_s is not None and now_s - start_s >= timeout_s:
            raise WaitTimeout(f"{state.path} has not ended within {timeout_s:g} s.")
        yield from outage.pause()


def download(request: Request[Any]) -> Steps[None]:
    """Gives the pieces of a file. The token is not forwarded when the answer redirects to an object store."""
    reply: Reply = yield Open(replace(request, timeout_s=UPLOAD_S), redirects=True)
    if reply.status != 200:
        raise refusal(reply)
    while (piece := (yield NextPiece())) is not None:
        yield Give(piece)
    yield Close()


def _status(answer: Any) -> str:
    return str(answer["status"] if isinstance(answer, dict) else answer.status)
