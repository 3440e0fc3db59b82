"""One attempt to get an answer to a call. Only the attempt writes the call's row in the ledger: opened, sent, settled,
failed.

It waits for budget and for its turn, asks the provider, and retries while a retry can help. Time in queues (turn and
backoff) and time at the provider are measured separately, so that a busy orchestrator is not mistaken for a slow provider.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from orchestrator.gateway.call_spans import call_span
from orchestrator.gateway.calls import Call, CallResult, Settlement, Source, question_body, question_key
from orchestrator.gateway.edge.errors import Code, GatewayError, UpstreamError
from orchestrator.gateway.ledger.ledger import (
    BatchedRequest,
    Collected,
    Failure,
    KeyConflict,
    Ledger,
    LedgerUnavailable,
    MadeElsewhere,
    NoRoom,
    NotRunning,
    Opened,
    Opening,
    Reservation,
    Stored,
    Unanswered,
)
from orchestrator.gateway.ledger.prices import FREE, cache_saving_nano_usd, cost_nano_usd, usd
from orchestrator.gateway.pacing.limiter import Limiter, PausedTooLong, Permit
from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.protocols.protocol import Message, TokenUsage
from orchestrator.gateway.upstream.port import Upstream
from orchestrator.system.clock import Clock
from orchestrator.system.telemetry import NoTelemetry, Telemetry

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

POLL_S = 0.5
"""How often to ask the ledger again while waiting, since other processes write to it too."""
STORE_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0, 5.0, 10.0, 10.0, 10.0, 15.0)
"""Pauses between attempts to write an outcome to an unavailable ledger, before giving up."""


@dataclass(frozen=True)
class AttemptServices:
    """What every attempt uses. `call_ended` returns the event that is set when another call of this process ends."""

    ledger: Ledger
    clock: Clock
    sleep: Sleep
    rng: random.Random
    policy: RetryPolicy
    call_ended: Callable[[], asyncio.Event]
    telemetry: Telemetry = field(default_factory=NoTelemetry)


@dataclass(frozen=True)
class WaitReason:
    """What an attempt is waiting for; `sentence` is shown to people."""

    since: float
    sentence: Callable[[], str]


class AttemptOver(GatewayError):
    """The run's attempt ended after it sent the request and before the call was opened."""

    def __init__(self) -> None:
        super().__init__(401, Code.UNAUTHORIZED, "the key must be the token of a run that is running")


class CallCollected(GatewayError):
    """The call is answered in a batch of the provider, or can be opened only after one has ended."""

    def __init__(self) -> None:
        super().__init__(
            425, Code.COLLECTED, "the call waits for a batch of the provider; end, and ask again in a new attempt"
        )


class CallAttempt:
    """While `at_provider` is set, the call may have been sent and its answer is not in the ledger yet: do not interrupt
    it."""

    def __init__(self, call: Call, limiter: Limiter, upstream: Upstream | None, services: AttemptServices) -> None:
        self.call = call
        self.wait_reason: WaitReason | None = None
        self.at_provider = False
        self._permit: Permit | None = None
        self._limiter = limiter
        self._upstream = upstream
        self._services = services
        self._ledger = services.ledger
        self._first_sent_at: float | None = None
        self._maybe_billed = False
        self._tries = 0
        self._queue_s = 0.0
        self._provider_s = 0.0

    async def run(self) -> CallResult:
        """Returns the answer, stored or bought. By the time this returns or raises, the answer or failure is in the
        ledger."""
        try:
            opened = await self._open()
            if isinstance(opened, Stored):
                return CallResult(opened.settlement, opened.source)
            return CallResult(await self._buy(), Source.BOUGHT)
        except LedgerUnavailable as error:
            raise GatewayError(503, Code.UNAVAILABLE, f"the ledger cannot be used now: {error}", retry_after_s=2) from error
        finally:
            self._release_permit(unused=True)
            self._ledger.released(*self.call.id)

    async def _open(self) -> Reservation | Stored:
        """Wait until this attempt may make the call, or the call has an answer. If a permit is free, one
        write records the call as opened and sent."""
        while True:
            self._permit = None if self.call.lot else self._limiter.try_acquire(self.call.context.run_id)
            self.at_provider = self._permit is not None
            ended = self._services.call_ended()
            opened: Opened = await self._ledger.open(self._opening(sent=self._permit is not None))
            if isinstance(opened, Reservation):
                return opened
            self._release_permit(unused=True)
            self.at_provider = False
            match opened:
                case Stored():
                    return opened
                case KeyConflict():
                    raise key_taken(self.call)
                case NotRunning():
                    raise AttemptOver
                case MadeElsewhere():
                    await self._wait(ended, "another process to finish the same call")
                case Collected():
                    raise CallCollected
                case Unanswered():
                    self._make_now(opened.error)
                case NoRoom():
                    if _held_by_batches(self.call, opened):
                        raise CallCollected
                    _check_room(self.call, opened)
                    await self._wait(ended, "room in the budget")

    def _make_now(self, why: str) -> None:
        """A batch brought no answer to the call: make it in the ordinary way, or give it up."""
        terms = self.call.context.batch
        if terms is not None and not terms.ordinary_next:
            raise UpstreamError(502, f"the provider's batches brought no answer: {why}", retry=False)
        self.call = self.call.made_now()

    def _opening(self, *, sent: bool) -> Opening:
        call, context = self.call, self.call.context
        return Opening(
            run_id=context.run_id,
            call_key=call.key,
            request_hash=call.request_hash,
            provider=context.provider,
            model=context.model,
            worst_nano_usd=call.worst_nano_usd,
            budget_nano_usd=context.budget_nano_usd,
            day_caps=context.day_caps,
            payer=context.payer,
            sent=sent,
            attempt=context.attempt,
            question_key=question_key(call.request_hash, "" if self._upstream is None else self._upstream.server),
            reuse_since=context.reuse_since,
            judge_model_id=context.judge_model_id,
            batched=None if call.lot is None else BatchedRequest(call.lot.text(), question_body(call.body)),
        )

    async def _buy(self) -> Settlement:
        """Settle the reserved call, or record its failure."""
        began = self._services.clock.now()
        try:
            settlement = self._settlement(await self._ask_until_answered())
        except GatewayError as error:
            self._note(began, error=error.code.value)
            maybe_billed, message = isinstance(error, UpstreamError) and error.maybe_billed, error.message
            with suppress(LedgerUnavailable):  # the call then counts as lost when it is next opened
                await self._store(lambda: self._fail(message, maybe_billed=maybe_billed))
            raise
        except asyncio.CancelledError:
            self._note(began, error="cancelled")
            if not self._maybe_billed:
                with suppress(LedgerUnavailable):
                    await self._fail("given up", maybe_billed=False)
            raise
        self._note(began, settlement)
        await self._store(lambda: self._ledger.settle(*self.call.id, settlement))
        return settlement

    def _note(self, began: datetime, settlement: Settlement | None = None, error: str | None = None) -> None:
        if self._services.telemetry.wanted:
            ended = self._services.clock.now()
            self._services.telemetry.record(call_span(self.call, began, ended, settlement, error))

    async def _ask_until_answered(self) -> Message:
        failures = 0
        while True:
            try:
                return await self._ask_once()
            except UpstreamError as error:
                self._maybe_billed = False
                failures += 1
                delay = self._services.policy.delay_s(error, failures, self._elapsed_s(), self._services.rng)
                if delay is None:
                    raise
                await self._prepare_again(error)
                await self._back_off(delay, str(error.status))

    async def _ask_once(self) -> Message:
        already_sent = self._permit is not None
        permit = self._permit = self._permit or await self._acquire()
        self.at_provider = True
        try:
            upstream = self._checked_upstream()
            if not already_sent:
                await self._ledger.sent(*self.call.id)
            self._tries += 1
            self._maybe_billed = True
            with self._timing_provider():
                reply = await upstream.ask(self.call, permit.accepted)
        except BaseException as error:
            self.at_provider = False
            if isinstance(error, UpstreamError) and error.crowded:
                permit.refused(error.retry_after_s, str(error.status))
            raise
        else:
            permit.accepted()
            return reply.message
        finally:
            self._release_permit()

    async def _prepare_again(self, error: UpstreamError) -> None:
        """Record in the ledger that the try failed and another follows."""
        if not error.maybe_billed:
            await self._store(lambda: self._ledger.refused(*self.call.id))
            return
        context = self.call.context
        if not await self._store(lambda: self._ledger.again(*self.call.id, context.budget_nano_usd, context.day_caps)):
            message = f"no room in the budget for another try after: {error.message}"
            raise UpstreamError(402, message, retry=False, code=Code.BUDGET_EXHAUSTED, maybe_billed=True) from error

    async def _acquire(self) -> Permit:
        limiter, provider = self._limiter, self.call.context.provider

        def sentence() -> str:
            if limiter.pause_left_s() > 0:
                return self._next_try(limiter.pause_reason, limiter.paused_until)
            return f"waiting for {provider}: it takes {limiter.allowance()} now, {limiter.queued} wait"

        with self._waiting(sentence):
            try:
                return await limiter.acquire(self.call.context.run_id, again=self._tries > 0)
            except PausedTooLong as error:
                message = f"{provider} does not take calls for {error.left_s:.0f} s more: {error.reason}"
                raise GatewayError(429, Code.RATE_LIMITED, message, retry_after_s=error.left_s) from error

    async def _back_off(self, delay_s: float, reason: str) -> None:
        until = self._now() + delay_s
        with self._waiting(lambda: self._next_try(reason, until)):
            await self._services.sleep(delay_s)

    def _checked_upstream(self) -> Upstream:
        if self._upstream is None:
            sentence = f"there is no provider {self.call.context.provider} here; the configuration says which there are"
            raise GatewayError(404, Code.NOT_FOUND, sentence)
        return self._upstream

    def _release_permit(self, *, unused: bool = False) -> None:
        if self._permit is not None:
            self._permit.release(unused=unused)
            self._permit = None

    async def _store(self, write: Callable[[], Awaitable[T]]) -> T:
        """Write what happened at the provider, retrying for a while if the ledger is unavailable."""
        for pause_s in STORE_PAUSES_S:
            try:
                return await write()
            except LedgerUnavailable:
                await self._services.sleep(pause_s)
        return await write()

    def _fail(self, error: str, *, maybe_billed: bool) -> Awaitable[None]:
        return self._ledger.fail(*self.call.id, Failure(error, maybe_billed, self._queue_s, self._provider_s))

    async def _wait(self, ended: asyncio.Event, reason: str) -> None:
        """Wait until another call of this process ends, or briefly: other processes write to the ledger too."""
        with self._note_wait(lambda: f"waiting for {reason}"), suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await ended.wait()

    @contextmanager
    def _waiting(self, sentence: Callable[[], str]) -> Iterator[None]:
        """Count the block as time in the provider's queue."""
        began = self._now()
        try:
            with self._note_wait(sentence):
                yield
        finally:
            self._queue_s += self._now() - began

    @contextmanager
    def _timing_provider(self) -> Iterator[None]:
        began = self._now()
        self._first_sent_at = began if self._first_sent_at is None else self._first_sent_at
        try:
            yield
        finally:
            self._provider_s += self._now() - began

    @contextmanager
    def _note_wait(self, sentence: Callable[[], str]) -> Iterator[None]:
        self.wait_reason = WaitReason(self._now(), sentence)
        try:
            yield
        finally:
            self.wait_reason = None

    def _next_try(self, reason: str, until: float) -> str:
        left_s = math.ceil(max(until - self._now(), 0))
        return f"waiting for {self.call.context.provider}: {reason}, next try in {left_s} s"

    def _elapsed_s(self) -> float:
        """Time since the first try; waiting for a turn before that is not counted."""
        return 0.0 if self._first_sent_at is None else self._now() - self._first_sent_at

    def _now(self) -> float:
        return self._services.clock.monotonic()

    def _settlement(self, message: Message) -> Settlement:
        wire, prices = self.call.wire, self.call.context.prices
        usage = wire.usage(message) or _estimate(self.call, message)
        return Settlement(
            protocol=wire.protocol,
            message=message,
            usage=usage,
            finish=wire.finish(message),
            cost_nano_usd=cost_nano_usd(usage, prices or FREE),
            tries=self._tries,
            queue_s=self._queue_s,
            provider_s=self._provider_s,
            priced=prices is not None,
            cache_saving_nano_usd=cache_saving_nano_usd(usage, prices or FREE),
        )


def _held_by_batches(call: Call, no_room: NoRoom) -> bool:
    """Whether room may come only when a batch has ended: the run must not hold its container until then."""
    return bool(no_room.batched_nano_usd or (call.lot is not None and no_room.reserved_nano_usd))


def key_taken(call: Call) -> GatewayError:
    sentence = f"call key {call.key} was used for a different request; a new question needs a new key (the next turn)"
    return GatewayError(409, Code.CONFLICT, sentence)


def _check_room(call: Call, no_room: NoRoom) -> None:
    """Raise if the call could not fit even if all calls in flight cost nothing."""
    budget, owner = (call.context.budget_nano_usd or 0, "of the run")
    if no_room.cap is not None:
        budget, owner = no_room.cap.nano_usd, no_room.cap.owner
    if no_room.reserved_nano_usd and no_room.spent_nano_usd + call.worst_nano_usd <= budget:
        return
    sentence = (
        f"Stopped at the budget {owner} ({_dollars(budget)}): {_dollars(no_room.spent_nano_usd)} is spent, "
        f"the next call could cost {_dollars(call.worst_nano_usd)}"
    )
    raise GatewayError(402, Code.BUDGET_EXHAUSTED, sentence)


def _dollars(nano_usd: int) -> str:
    """Cents, and what is less than a cent with two digits."""
    amount = usd(nano_usd)
    return f"${amount:,.2f}" if amount == 0 or amount >= 0.01 else f"${amount:.2g}"


def _estimate(call: Call, message: Message) -> TokenUsage:
    """For servers that report no usage: one token per four characters, marked as estimated."""
    output = len(str(message)) // 4
    limit = call.request.max_output_tokens
    return TokenUsage(
        input_tokens=len(call.request.prompt_text) // 4,
        output_tokens=output if limit is None else min(output, limit * call.request.answers),
        estimated=True,
    )
