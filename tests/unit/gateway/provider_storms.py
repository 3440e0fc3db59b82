"""Providers with a limit, and runs that storm them, in virtual time: the limiter and the retry policy are the real ones."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.gateway.edge.errors import UpstreamError
from orchestrator.gateway.pacing.limiter import Limiter
from orchestrator.gateway.pacing.retry import RetryPolicy
from tests.unit.gateway.virtual_time import LoopClock, run_virtually

Says = Callable[[float], float | None]
"""What a refusal says, given the true time until there is room: seconds to wait, or nothing."""


def silent(left_s: float) -> float | None:
    return None


def exact(left_s: float) -> float | None:
    return left_s


def whole_seconds(left_s: float) -> float | None:
    return max(math.ceil(left_s), 1)


def always(seconds: float) -> Says:
    return lambda left_s: seconds


class Rule(Protocol):
    """What a provider takes. `left_s` is None when it takes the call, else how long until it would."""

    def take(self, now: float, size: float) -> float | None: ...

    def empty_s(self, now: float) -> float | None:
        """How long it takes nothing, when that is so."""

    def done(self) -> None: ...


@dataclass
class Bucket:
    """So much per second, saved up for at most `saved_s`."""

    per_s: float
    saved_s: float
    level: float = -1.0
    at: float = 0.0

    def take(self, now: float, size: float) -> float | None:
        full = max(self.per_s * self.saved_s, 1.0)
        self.level = full if self.level < 0 else min(self.level + (now - self.at) * self.per_s, full)
        self.at = now
        if self.level >= size - 1e-9:
            self.level -= size
            return None
        return (size - self.level) / self.per_s

    def empty_s(self, now: float) -> float | None:
        return (1 - self.level) / self.per_s if self.level < 1 else None

    def done(self) -> None: ...


@dataclass
class Windows:
    """So much in each span of `span_s` by the clock."""

    per_s: float
    span_s: float
    used: float = 0.0
    number: int = -1

    def take(self, now: float, size: float) -> float | None:
        number = int(now / self.span_s)
        if number != self.number:
            self.number, self.used = number, 0.0
        if self.used + size > self.per_s * self.span_s + 1e-9:
            return (number + 1) * self.span_s - now
        self.used += size
        return None

    def empty_s(self, now: float) -> float | None:
        return (self.number + 1) * self.span_s - now if self.used + 1 > self.per_s * self.span_s else None

    def done(self) -> None: ...


@dataclass
class Sliding:
    """So much in the last `span_s`, at any moment."""

    per_s: float
    span_s: float
    taken: deque[float] = field(default_factory=deque)

    def take(self, now: float, size: float) -> float | None:
        while self.taken and self.taken[0] <= now - self.span_s:
            self.taken.popleft()
        if len(self.taken) + 1 > self.per_s * self.span_s + 1e-9:
            return self.taken[0] + self.span_s - now
        self.taken.append(now)
        return None

    def empty_s(self, now: float) -> float | None:
        return self.taken[0] + self.span_s - now if len(self.taken) + 1 > self.per_s * self.span_s else None

    def done(self) -> None: ...


@dataclass
class AtOnce:
    """So many at the same time, however fast."""

    places: int
    busy: int = 0

    def take(self, now: float, size: float) -> float | None:
        if self.busy >= self.places:
            return 1.0
        self.busy += 1
        return None

    def empty_s(self, now: float) -> float | None:
        return None

    def done(self) -> None:
        self.busy -= 1


@dataclass(frozen=True)
class Storm:
    """Twenty runs that ask as fast as they may. `takes_s` are the bounds of how long an answer takes."""

    rule: Callable[[], Rule]
    takes_s: tuple[float, float]
    fair_rate: float
    says: Says = silent
    refusal_s: float = 0.05
    tells_at_once: bool = True  #: the head of an answer comes when the call is taken, not with the answer
    sizes: tuple[float, float] = (1.0, 1.0)
    orchestrators: int = 1
    headers: bool = False  #: every answer says whether the limit is used up, and for how long
    change: Callable[[Rule, float], None] | None = None
    runs: int = 20
    seed: int = 1


@dataclass
class Seen:
    """What the provider and the runs saw."""

    taken: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    early: int = 0  #: calls before the time that a refusal had said
    failed: int = 0
    done: Counter[int] = field(default_factory=Counter)

    def rate(self, since: float, until: float) -> float:
        return sum(1 for moment in self.taken if since <= moment < until) / (until - since)

    def refusals(self, since: float, until: float) -> float:
        """Their share of all calls."""
        refused = sum(1 for moment in self.refused if since <= moment < until)
        return refused / max(refused + sum(1 for moment in self.taken if since <= moment < until), 1)

    def least(self, runs: int) -> float:
        """The answers of the run with the fewest, as a share of the mean."""
        return min(self.done[run] for run in range(runs)) * runs / max(self.done.total(), 1)


def watch(storm: Storm, until_s: float, since_s: float = 0.0) -> Seen:
    """What happens in so long; answers per run are counted from `since_s` on."""
    return run_virtually(_storm(storm, until_s, since_s))


async def _storm(storm: Storm, until_s: float, since_s: float) -> Seen:
    loop, rng, seen, rule = asyncio.get_running_loop(), random.Random(storm.seed), Seen(), storm.rule()
    gates = [Limiter(clock=LoopClock(), sleep=asyncio.sleep) for _ in range(storm.orchestrators)]
    closed_until = [0.0] * len(gates)
    policy = RetryPolicy()
    mean_s = sum(storm.takes_s) / 2
    workers = 4 + math.ceil(1.5 * storm.fair_rate * (mean_s + 1) / storm.runs)

    async def call(run: int, which: int) -> bool:
        gate, began, failures = gates[which], None, 0
        size = rng.uniform(*storm.sizes)
        while True:
            permit = await gate.acquire(str(run), again=failures > 0)
            began = loop.time() if began is None else began
            seen.early += loop.time() < closed_until[which] - 1e-6
            left_s = rule.take(loop.time(), size)
            if left_s is None:
                seen.taken.append(loop.time())
                takes_s = rng.uniform(*storm.takes_s)
                if storm.tells_at_once:
                    empty_s = rule.empty_s(loop.time()) if storm.headers else None
                    await asyncio.sleep(min(0.05, takes_s))
                    permit.accepted(empty_s)
                    takes_s = max(takes_s - 0.05, 0)
                await asyncio.sleep(takes_s)
                rule.done()
                permit.accepted()
                permit.release()
                return True
            failures += 1
            said = storm.says(left_s)
            at = loop.time()
            await asyncio.sleep(storm.refusal_s)
            seen.refused.append(at)
            if said is not None:
                closed_until[which] = max(closed_until[which], loop.time() + said)
            permit.refused(said, "429")
            error = UpstreamError(429, "slow down", retry=True, crowded=True, retry_after_s=said)
            delay = policy.delay_s(error, failures, loop.time() - began, rng)
            if delay is None:
                return False
            await asyncio.sleep(delay)

    async def worker(run: int) -> None:
        await asyncio.sleep(rng.uniform(0, 0.5))
        while True:
            if await call(run, run % len(gates)):
                seen.done[run] += loop.time() >= since_s
            else:
                seen.failed += 1

    async def weather() -> None:
        while storm.change is not None:
            storm.change(rule, loop.time())
            await asyncio.sleep(1)

    tasks = [asyncio.create_task(worker(run)) for run in range(storm.runs) for _ in range(workers)]
    tasks.append(asyncio.create_task(weather()))
    await asyncio.sleep(until_s)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for gate in gates:
        await gate.close()
    return seen
