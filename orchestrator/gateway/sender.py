"""Brings one call to an answer: waits for its turn, tries, and tries again while that makes sense.

Time waiting (turn and backoff) and time at the provider are kept apart, so that a busy orchestrator is not taken for a
slow provider.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TypeVar

from orchestrator.gateway.calls import Call, Settlement
from orchestrator.gateway.edge.errors import Code, GatewayError, UpstreamError
from orchestrator.gateway.ledger.ledger import Failure, Ledger, LedgerUnavailable
from orchestrator.gateway.ledger.prices import FREE, cost_nusd
from orchestrator.gateway.pacing.limiter import Limiter, PausedTooLong, Slot
from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.pacing.wait_reasons import WaitBoard, next_try
from orchestrator.gateway.protocols.protocol import Message, TokenUsage
from orchestrator.gateway.upstream.port import Reply, Upstream
from orchestrator.system.clock import Clock

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

STORE_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0, 5.0, 10.0, 10.0, 10.0, 15.0)
"""What a provider did is held and offered to the ledger again after these pauses before it is given up."""


class Sender:
    def __init__(
        self,
        *,
        upstreams: Mapping[str, Upstream],
        ledger: Ledger,
        board: WaitBoard,
        clock: Clock,
        sleep: Sleep,
        rng: random.Random,
        policy: RetryPolicy,
    ) -> None:
        self._upstreams = upstreams
        self._ledger = ledger
        self._board = board
        self._clock = clock
        self._sleep = sleep
        self._rng = rng
        self._policy = policy
        self.at_provider: set[tuple[str, str]] = set()
        self._limiters: dict[tuple[str, str, str], Limiter] = {}

    def limiter(self, provider: str, model: str, key_id: str = "") -> Limiter:
        """Providers limit each key by itself."""
        key = (provider, model, key_id)
        if key not in self._limiters:
            self._limiters[key] = Limiter(clock=self._clock, sleep=self._sleep, too_long_s=self._policy.total_s)
        return self._limiters[key]

    def server(self, provider: str) -> str:
        """What answers under this name, as one text: another address may be another model."""
        upstream = self._upstreams.get(provider)
        return "" if upstream is None else upstream.server

    def take_place(self, call: Call) -> Slot | None:
        """A place at the provider if there is one at once; for `send`, or to be given back."""
        context = call.context
        slot = self._limiter_of(call).try_acquire(context.run_id)
        if slot is not None:
            self.at_provider.add(call.flight)
        return slot

    def give_place_back(self, call: Call, slot: Slot) -> None:
        self.at_provider.discard(call.flight)
        self._limiter_of(call).release_unused(slot)

    def _limiter_of(self, call: Call) -> Limiter:
        return self.limiter(call.context.provider, call.context.model, call.context.payer.key_id)

    async def send(self, call: Call, slot: Slot | None = None) -> Settlement:
        """Settle a call that was reserved, or have it fail; either is in the ledger when this returns or raises.

        With a place from `take_place`, the ledger has it as sent already.
        """
        trip = _Trip(self._clock)
        try:
            message = await self._until_answered(call, trip, slot)
            settlement = _settlement(call, message, trip)
        except GatewayError as error:
            lost = isinstance(error, UpstreamError) and error.maybe_billed
            failure = Failure(error.message, lost, trip.queue_s, trip.provider_s)
            with suppress(LedgerUnavailable):  # then the call counts as lost when it is opened again
                await self._stored(lambda: self._ledger.fail(*call.flight, failure))
            raise
        except asyncio.CancelledError:
            if not trip.asking:  # nothing is under way, so nothing is lost
                with suppress(LedgerUnavailable):
                    await self._ledger.fail(*call.flight, Failure("given up", False, trip.queue_s, trip.provider_s))
            raise
        await self._stored(lambda: self._ledger.settle(*call.flight, settlement))
        return settlement

    async def _stored(self, write: Callable[[], Awaitable[T]]) -> T:
        """What happened at the provider is told to the ledger until it has it, or patience ends."""
        for pause_s in STORE_PAUSES_S:
            try:
                return await write()
            except LedgerUnavailable:
                await self._sleep(pause_s)
        return await write()

    async def close(self) -> None:
        for limiter in self._limiters.values():
            await limiter.close()

    async def _until_answered(self, call: Call, trip: _Trip, slot: Slot | None) -> Message:
        failures = 0
        while True:
            try:
                return (await self._try(call, trip, slot)).message
            except UpstreamError as error:
                slot = None
                failures += 1
                delay = self._policy.delay_s(error, failures, trip.elapsed_s(), self._rng)
                if delay is None:
                    raise
                if not error.maybe_billed:
                    await self._stored(lambda: self._ledger.refused(*call.flight))
                elif not await self._stored(lambda: self._again(call)):
                    message = f"no room in the budget for another try after: {error.message}"
                    raise UpstreamError(402, message, retry=False, code=Code.BUDGET_EXHAUSTED, maybe_billed=True) from error
                await self._back_off(call, trip, delay, str(error.status))

    def _again(self, call: Call) -> Awaitable[bool]:
        return self._ledger.again(*call.flight, call.context.budget_nusd, call.context.day_caps)

    async def _try(self, call: Call, trip: _Trip, slot: Slot | None) -> Reply:
        limiter = self._limiter_of(call)
        noted = slot is not None
        if slot is None:
            slot = await self._turn(call, limiter, trip)
            self.at_provider.add(call.flight)
        try:
            upstream = self._upstream(call.context.provider)
            if not noted:
                await self._ledger.sent(*call.flight)
            trip.tries += 1
            with trip.at_provider():
                reply = await upstream.ask(call, partial(limiter.received, slot))
        except UpstreamError as error:
            trip.asking = False
            if error.crowded:
                limiter.release_crowded(slot, error.retry_after_s, str(error.status))
            else:
                limiter.release(slot)
            raise
        except BaseException:
            limiter.release(slot)
            raise
        finally:
            self.at_provider.discard(call.flight)
        limiter.release_well(slot)
        return reply

    def _upstream(self, provider: str) -> Upstream:
        upstream = self._upstreams.get(provider)
        if upstream is None:
            sentence = f"there is no provider {provider} here; the configuration says which there are"
            raise GatewayError(404, Code.NOT_FOUND, sentence)
        return upstream

    async def _turn(self, call: Call, limiter: Limiter, trip: _Trip) -> Slot:
        provider = call.context.provider

        def sentence() -> str:
            left = limiter.pause_left_s()
            if left > 0:
                return next_try(provider, limiter.pause_reason, left)
            takes = f"{int(limiter.limit)} calls at once"
            if limiter.pace is not None:
                takes += f", {limiter.pace * 60:.0f} a minute"
            return f"waiting for {provider}: it takes {takes} now, {limiter.queued} wait"

        with trip.queueing(), self._board.waiting(call.flight, sentence):
            try:
                return await limiter.acquire(call.context.run_id, again=trip.tries > 0)
            except PausedTooLong as error:
                message = f"{provider} does not take calls for {error.left_s:.0f} s more: {error.reason}"
                raise GatewayError(429, Code.RATE_LIMITED, message, retry_after_s=error.left_s) from error

    async def _back_off(self, call: Call, trip: _Trip, delay: float, reason: str) -> None:
        until = self._clock.monotonic() + delay

        def sentence() -> str:
            return next_try(call.context.provider, reason, max(until - self._clock.monotonic(), 0))

        with trip.queueing(), self._board.waiting(call.flight, sentence):
            await self._sleep(delay)


class _Trip:
    """Where the time of one call went."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: float | None = None
        self.asking = False
        self.tries = 0
        self.queue_s = 0.0
        self.provider_s = 0.0

    def elapsed_s(self) -> float:
        """Since the first try: waiting for one's turn before it is nobody's failure."""
        return 0.0 if self._began is None else self._clock.monotonic() - self._began

    def queueing(self) -> _Stopwatch:
        return _Stopwatch(self._clock, self._queued)

    def at_provider(self) -> _Stopwatch:
        self.asking = True
        if self._began is None:
            self._began = self._clock.monotonic()
        return _Stopwatch(self._clock, self._asked)

    def _queued(self, seconds: float) -> None:
        self.queue_s += seconds

    def _asked(self, seconds: float) -> None:
        self.provider_s += seconds


class _Stopwatch:
    def __init__(self, clock: Clock, add: Callable[[float], None]) -> None:
        self._clock = clock
        self._add = add
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = self._clock.monotonic()

    def __exit__(self, *_: object) -> None:
        self._add(self._clock.monotonic() - self._began)


def _settlement(call: Call, message: Message, trip: _Trip) -> Settlement:
    usage = call.wire.usage(message) or _estimate(call, message)
    return Settlement(
        protocol=call.wire.protocol,
        message=message,
        usage=usage,
        finish=call.wire.finish(message),
        cost_nusd=cost_nusd(usage, call.context.prices or FREE),
        tries=trip.tries,
        queue_s=trip.queue_s,
        provider_s=trip.provider_s,
        priced=call.context.prices is not None,
    )


def _estimate(call: Call, message: Message) -> TokenUsage:
    """For servers that do not count: four letters to a token, and marked as estimated."""
    output = len(str(message)) // 4
    limit = call.asked.max_output_tokens
    return TokenUsage(
        input_tokens=len(call.asked.prompt_text) // 4,
        output_tokens=output if limit is None else min(output, limit * call.asked.answers),
        estimated=True,
    )
