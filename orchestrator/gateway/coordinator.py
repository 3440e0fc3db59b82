"""Runs one attempt per call, each in its own task. Everybody who asks for the same call waits for that task; it goes on
if they disconnect. The coordinator never writes to the ledger; the attempt does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace

import structlog

from orchestrator.gateway.attempt import AttemptOver, AttemptServices, CallAttempt, CallCollected, Sleep, key_taken
from orchestrator.gateway.calls import Call, CallResult, Source
from orchestrator.gateway.edge.errors import Code, GatewayError
from orchestrator.gateway.ledger.ledger import Ledger
from orchestrator.gateway.pacing.limiter import Limiter
from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.upstream.port import Upstream
from orchestrator.system.clock import Clock
from orchestrator.system.telemetry import NoTelemetry, Telemetry

SHOWN_AFTER_S = 1.0
"""Shorter waits are not shown."""

log = structlog.get_logger()


class CallCoordinator:
    def __init__(
        self,
        *,
        upstreams: Mapping[str, Upstream],
        ledger: Ledger,
        clock: Clock,
        sleep: Sleep,
        rng: random.Random,
        policy: RetryPolicy,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._upstreams = upstreams
        self._clock = clock
        self._services = AttemptServices(ledger, clock, sleep, rng, policy, lambda: self._ended, telemetry or NoTelemetry())
        self._limiters: dict[tuple[str, str, str], Limiter] = {}
        self._running: dict[tuple[str, str], tuple[CallAttempt, asyncio.Task[CallResult]]] = {}
        self._ended = asyncio.Event()
        self._closing = False

    async def answer(self, call: Call) -> CallResult:
        """Returns the answer to a call: stored, from a running attempt, or bought. The call goes on if the caller is
        cancelled."""
        answer = await self.ask(call).within(None)
        assert answer is not None
        return answer

    def ask(self, call: Call) -> Waiter:
        """Start a call, or join the attempt that is running."""
        return Waiter(self, call)

    def attempt_of(self, call: Call) -> tuple[CallAttempt, asyncio.Task[CallResult], bool]:
        """The attempt that will produce the answer, its task, and whether it was already running."""
        running = self._running.get(call.id)
        if running is None:
            return *self._start(call), False
        if running[0].call.request_hash != call.request_hash:
            raise key_taken(call)
        return *running, True

    def status(self, run_id: str) -> str | None:
        """What the run's longest-waiting call waits for, in one sentence; None if nothing delays it."""
        reasons = [attempt.wait_reason for (run, _), (attempt, _) in self._running.items() if run == run_id]
        oldest = min((reason for reason in reasons if reason is not None), key=lambda reason: reason.since, default=None)
        if oldest is None or self._clock.monotonic() - oldest.since < SHOWN_AFTER_S:
            return None
        return oldest.sentence()

    def notes(self, provider: str, model: str) -> list[str]:
        """What was learned about the server of a model, in sentences."""
        upstream = self._upstreams.get(provider)
        return [] if upstream is None else upstream.notes(model)

    def upstream(self, provider: str) -> Upstream | None:
        return self._upstreams.get(provider)

    def open_calls(self) -> int:
        return len(self._running)

    def limiter(self, provider: str, model: str, key_id: str = "") -> Limiter:
        """One limiter per key as well: providers limit each key separately."""
        key = (provider, model, key_id)
        if key not in self._limiters:
            services = self._services
            self._limiters[key] = Limiter(clock=self._clock, sleep=services.sleep, too_long_s=services.policy.total_s)
        return self._limiters[key]

    async def abandon(self, run_id: str) -> None:
        """Give up the calls of a run that ended, except those at the provider, which are allowed to finish."""
        running = [attempt for (run, _), attempt in self._running.items() if run == run_id]
        tasks = [task for attempt, task in running if not attempt.at_provider]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self, grace_s: float) -> None:
        """Accept no more calls, wait up to `grace_s` for those at the provider, then give up the rest."""
        self._closing = True
        for run in {run for run, _ in self._running}:
            await self.abandon(run)
        tasks = [task for _, task in self._running.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for limiter in self._limiters.values():
            await limiter.close()

    def _start(self, call: Call) -> tuple[CallAttempt, asyncio.Task[CallResult]]:
        if self._closing:
            raise GatewayError(503, Code.UNAVAILABLE, "the service is stopping; try again shortly", retry_after_s=5)
        context = call.context
        limiter = self.limiter(context.provider, context.model, context.payer.key_id)
        attempt = CallAttempt(call, limiter, self._upstreams.get(context.provider), self._services)
        task = asyncio.get_running_loop().create_task(attempt.run(), name=f"call {call.key}")
        self._running[call.id] = attempt, task
        task.add_done_callback(lambda finished_task: self._note_end(call, finished_task))
        return attempt, task

    def _note_end(self, call: Call, task: asyncio.Task[CallResult]) -> None:
        self._running.pop(call.id, None)
        self._ended.set()
        self._ended = asyncio.Event()
        where = {"run_id": call.context.run_id, "call_key": call.key, "provider": call.context.provider}
        if task.cancelled():
            log.info("call given up", action="call_abandoned", **where)
        elif (error := task.exception()) is None or isinstance(error, CallCollected):
            return
        elif isinstance(error, GatewayError):
            log.warning("call failed", action="call_failed", code=error.code, status=error.status, **where)
        else:
            log.error("call broke", action="call_broken", exc_info=error, **where)


class Waiter:
    """Waits for the answer to a call. The call goes on if the waiter is cancelled."""

    def __init__(self, coordinator: CallCoordinator, call: Call) -> None:
        self._coordinator = coordinator
        self._call = call
        self._attempt, self._task, self._joined = coordinator.attempt_of(call)

    async def within(self, patience_s: float | None) -> CallResult | None:
        """The answer, or None if it has not arrived within `patience_s` seconds."""
        while True:
            await asyncio.wait((self._task,), timeout=patience_s)
            if not self._task.done():
                return None
            if self._task.cancelled():
                raise GatewayError(503, Code.UNAVAILABLE, "the call was abandoned: the run ended or the service is stopping")
            try:
                answer = self._task.result()
            except AttemptOver:
                if self._attempt.call.context.attempt == self._call.context.attempt:
                    raise
                # the attempt that ended was an earlier one of the run
                self._attempt, self._task, self._joined = self._coordinator.attempt_of(self._call)
                continue
            bought_by_another = self._joined and answer.source is Source.BOUGHT
            return replace(answer, source=Source.REPLAYED) if bought_by_another else answer
