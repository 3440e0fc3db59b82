"""Money, repetition and waiting at the coordinator, in virtual time."""

from __future__ import annotations

import asyncio
import random
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.gateway.calls import CallResult, Source
from orchestrator.gateway.edge.errors import Code, GatewayError, UpstreamError
from orchestrator.gateway.ledger.ledger import LedgerUnavailable, NotRunning, Opened, Opening
from orchestrator.gateway.ledger.prices import Prices, nano_usd
from orchestrator.gateway.pacing.provider_limits import LAST_PROBE_S
from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.protocols.protocol import Finish, PlainReply, TokenUsage
from tests.unit.gateway.memory_ledger import MemoryLedger
from tests.unit.gateway.scripted_upstream import WIRE, ScriptedUpstream, claude_run, make_call, make_coordinator
from tests.unit.gateway.virtual_time import run_virtually

PRICES = Prices(Decimal(3), Decimal(15))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_calls_at_the_provider_are_the_distinct_keys_whoever_dies(seed: int) -> None:
    """I9: runners hang up and come back, orchestrators are killed; only sends in flight at such a kill are doubled."""
    rng = random.Random(seed)
    upstream = ScriptedUpstream(latency_s=lambda: rng.uniform(0.1, 3.0))
    ledger = MemoryLedger()
    keys = [f"b/{number}/0/0" for number in range(40)]
    context = claude_run()

    async def attempt(seconds: float | None) -> None:
        """One runner at one orchestrator; after `seconds` the orchestrator is gone without a word."""
        book = MemoryLedger(ledger.rows)
        await book.recover()
        coordinator = make_coordinator(upstream, book)
        before = asyncio.all_tasks()

        async def runner(life_s: float | None) -> None:
            async with asyncio.timeout(life_s):
                await asyncio.gather(*(coordinator.answer(make_call(context, key)) for key in keys))

        for life in [rng.uniform(0.1, 4.0) for _ in range(3)] + [None]:
            task = asyncio.create_task(runner(life))
            try:
                async with asyncio.timeout(seconds):
                    await task
                    return
            except TimeoutError:
                if seconds is not None and rng.random() < 0.5:
                    break
        doomed = asyncio.all_tasks() - before
        for task in doomed:
            task.cancel()
        await asyncio.gather(*doomed, return_exceptions=True)

    async def story() -> None:
        for _ in range(5):
            await attempt(rng.uniform(0.1, 2.0))
        await attempt(None)

    run_virtually(story())
    lost = sum(row.lost_sends for row in ledger.rows.values())
    assert all(row.settlement is not None for row in ledger.rows.values())
    assert len(ledger.rows) == len(keys)
    assert upstream.calls.total() == len(keys) + lost
    assert set(upstream.calls) == set(keys)


@pytest.mark.parametrize("output_tokens", [100, 1000], ids=["cheap answers", "worst answers"])
def test_a_budget_is_used_but_never_passed_with_16_in_flight(output_tokens: int) -> None:
    upstream = ScriptedUpstream(output_tokens=output_tokens)
    ledger = MemoryLedger()
    context = claude_run(prices=PRICES, budget_nano_usd=nano_usd(Decimal("0.20")))

    async def story() -> list[GatewayError | CallResult]:
        coordinator, slots = make_coordinator(upstream, ledger), asyncio.Semaphore(16)

        async def one(number: int) -> GatewayError | CallResult:
            async with slots:
                try:
                    return await coordinator.answer(make_call(context, f"b/{number}/0/0"))
                except GatewayError as error:
                    return error

        return await asyncio.gather(*(one(number) for number in range(400)))

    results = run_virtually(story())
    refused = [result for result in results if isinstance(result, GatewayError)]
    spending = run_virtually(ledger.spending("run-1"))
    assert spending.settled_nano_usd <= context.budget_nano_usd
    assert spending.settled_nano_usd + make_call(context, "b/9/0/0").worst_nano_usd > context.budget_nano_usd, (
        "it is used up"
    )
    assert {(error.status, error.code) for error in refused} == {(402, Code.BUDGET_EXHAUSTED)}


def test_a_budget_without_a_price_is_refused_with_what_to_do() -> None:
    with pytest.raises(GatewayError, match="enter its prices") as refused:
        make_call(claude_run(prices=None, budget_nano_usd=1), "b/p/0/0")
    assert (refused.value.status, refused.value.code) == (402, Code.PRICE_UNKNOWN)


def test_tries_that_may_have_been_billed_count_against_the_budget() -> None:
    def cut(call: object) -> UpstreamError:
        return UpstreamError(502, "cut", retry=True, maybe_billed=True)

    ledger = MemoryLedger()
    worst = make_call(claude_run(prices=PRICES), "b/p/0/0").worst_nano_usd
    context = claude_run(prices=PRICES, budget_nano_usd=3 * worst)
    upstream = ScriptedUpstream(act=cut)

    async def story() -> None:
        with pytest.raises(GatewayError) as refused:
            await make_coordinator(upstream, ledger).answer(make_call(context, "b/p/0/0"))
        assert refused.value.code is Code.BUDGET_EXHAUSTED

    run_virtually(story())
    assert upstream.calls.total() == 3
    assert run_virtually(ledger.spending("run-1")).lost_nano_usd == 3 * worst


def test_a_waiting_run_says_so() -> None:
    def crowded(call: object) -> UpstreamError | None:
        return (
            UpstreamError(429, "slow", retry=True, crowded=True, retry_after_s=12) if upstream.calls.total() == 1 else None
        )

    upstream = ScriptedUpstream(act=crowded)

    async def story() -> None:
        coordinator = make_coordinator(upstream)
        asking = asyncio.create_task(coordinator.answer(make_call(claude_run(), "b/p/0/0")))
        await asyncio.sleep(0.5)
        assert coordinator.status("run-1") is None, "too short to be worth a word"
        await asyncio.sleep(2)
        assert coordinator.status("run-1") == "waiting for anthropic: 429, next try in 10 s"
        assert coordinator.status("run-2") is None
        another = asyncio.create_task(coordinator.answer(make_call(claude_run("run-2"), "b/p/0/0")))
        await asyncio.sleep(1.5)
        assert coordinator.status("run-2") == "waiting for anthropic: 429, next try in 9 s"
        answered = await asking
        await another
        assert coordinator.status("run-1") is None
        assert answered.settlement.queue_s == pytest.approx(12, abs=1)
        assert answered.settlement.provider_s == pytest.approx(1.05, abs=0.01)

    run_virtually(story())


def test_an_answer_is_held_while_the_ledger_is_away() -> None:
    class Away(MemoryLedger):
        refusals = 5

        async def settle(self, *args: object) -> None:
            if self.refusals:
                self.refusals -= 1
                raise LedgerUnavailable("locked")
            await super().settle(*args)  # type: ignore[arg-type]

    upstream, ledger = ScriptedUpstream(), Away()

    async def story() -> None:
        assert (await make_coordinator(upstream, ledger).answer(make_call(claude_run(), "b/p/0/0"))).source is Source.BOUGHT

    run_virtually(story())
    assert upstream.calls.total() == 1


def test_a_refusal_and_an_error_reach_a_ledger_that_was_away() -> None:
    """Else what cost nothing would count as lost."""

    class Away(MemoryLedger):
        refusals = 3

        def _away(self) -> None:
            self.refusals = (self.refusals - 1) % 4
            if self.refusals:
                raise LedgerUnavailable("locked")

        async def refused(self, *args: object) -> None:
            self._away()
            await super().refused(*args)  # type: ignore[arg-type]

        async def fail(self, *args: object) -> None:
            self._away()
            await super().fail(*args)  # type: ignore[arg-type]

    errors = [UpstreamError(429, "slow down", retry=True, crowded=True), UpstreamError(400, "no", retry=False)]
    upstream, ledger = ScriptedUpstream(act=lambda call: errors.pop(0)), Away()

    async def story() -> None:
        coordinator = make_coordinator(upstream, ledger)
        with pytest.raises(GatewayError) as refused:
            await coordinator.answer(make_call(claude_run(prices=PRICES), "b/p/0/0"))
        assert refused.value.status == 400
        await coordinator.close(0)

    run_virtually(story())
    (row,) = ledger.rows.values()
    assert (row.state, row.error, row.lost_sends, row.sends) == ("failed", "no", 0, 2)


def test_half_a_letter_in_an_answer_is_no_trouble() -> None:
    message = WIRE.compose(PlainReply("1", "m", 0, "half \ud83d", "", Finish.STOP, TokenUsage(1, 1)))
    assert b"half \\ud83d" in b"".join(WIRE.stream(message, {}))
    assert make_call(claude_run(prices=PRICES), "b/p/0/0").worst_nano_usd


def test_a_ledger_that_is_away_is_a_503() -> None:
    class Away(MemoryLedger):
        async def open(self, opening: object) -> object:  # type: ignore[override]
            raise LedgerUnavailable("locked")

    async def story() -> None:
        with pytest.raises(GatewayError) as refused:
            await make_coordinator(ScriptedUpstream(), Away()).answer(make_call(claude_run(), "b/p/0/0"))
        assert (refused.value.status, refused.value.code) == (503, Code.UNAVAILABLE)

    run_virtually(story())


def test_the_calls_of_a_run_that_ended_are_given_up_unless_they_are_at_the_provider() -> None:
    upstream, ledger = ScriptedUpstream(latency_s=lambda: 10.0), MemoryLedger()

    async def story() -> None:
        coordinator = make_coordinator(upstream, ledger)
        calls = [make_call(claude_run(), f"b/{number}/0/0") for number in range(20)]
        asking = [asyncio.create_task(coordinator.answer(call)) for call in calls]
        await asyncio.sleep(1)
        await coordinator.abandon("run-1")
        results = await asyncio.gather(*asking, return_exceptions=True)
        answered = [result for result in results if isinstance(result, CallResult)]
        given_up = [result for result in results if isinstance(result, GatewayError)]
        assert (len(answered), len(given_up)) == (16, 4)
        assert {error.code for error in given_up} == {Code.UNAVAILABLE}
        assert coordinator.open_calls() == 0

    run_virtually(story())
    assert upstream.calls.total() == 16
    assert run_virtually(ledger.spending("run-1")).lost_sends == 0


def test_an_answer_that_is_being_stored_is_not_given_up_with_its_run() -> None:
    class Slow(MemoryLedger):
        async def settle(self, *args: object) -> None:
            await asyncio.sleep(5)
            await super().settle(*args)  # type: ignore[arg-type]

    upstream, ledger = ScriptedUpstream(latency_s=lambda: 1.0), Slow()

    async def story() -> None:
        coordinator = make_coordinator(upstream, ledger)
        asking = asyncio.create_task(coordinator.answer(make_call(claude_run(), "b/p/0/0")))
        await asyncio.sleep(3)
        await coordinator.abandon("run-1")
        assert (await asking).source is Source.BOUGHT

    run_virtually(story())
    assert ledger.rows["run-1", "b/p/0/0"].state == "settled"


def test_closing_waits_for_what_is_at_the_provider_and_takes_nothing_new() -> None:
    upstream, ledger = ScriptedUpstream(latency_s=lambda: 3.0), MemoryLedger()

    async def story() -> None:
        coordinator = make_coordinator(upstream, ledger)
        asking = asyncio.create_task(coordinator.answer(make_call(claude_run(), "b/p/0/0")))
        await asyncio.sleep(1)
        closing = asyncio.create_task(coordinator.close(grace_s=5))
        await asyncio.sleep(0.1)
        with pytest.raises(GatewayError) as refused:
            await coordinator.answer(make_call(claude_run(), "b/q/0/0"))
        assert refused.value.status == 503
        await closing
        assert (await asking).settlement

    run_virtually(story())


def test_giving_up_is_bounded_in_tries_and_time() -> None:
    async def story(error: UpstreamError) -> float:
        policy = RetryPolicy(max_tries=5, total_s=300)
        coordinator = make_coordinator(ScriptedUpstream(act=lambda call: error), policy=policy)
        with pytest.raises(GatewayError):
            await coordinator.answer(make_call(claude_run(), "b/p/0/0"))
        await coordinator.close(0)
        return asyncio.get_running_loop().time()

    assert run_virtually(story(UpstreamError(500, "no", retry=True))) < 10
    crowded = run_virtually(story(UpstreamError(429, "no", retry=True, crowded=True)))
    assert 200 < crowded <= 300 + LAST_PROBE_S  # a last turn may be that far away


def test_a_call_that_can_go_at_once_is_written_twice_and_no_more() -> None:
    class Counting(MemoryLedger):
        writes = 0

        async def open(self, opening: Opening) -> Opened:
            self.writes += 1
            return await super().open(opening)

        async def sent(self, run_id: str, call_key: str) -> None:
            raise AssertionError("it was opened as sent")

    ledger, upstream = Counting(), ScriptedUpstream()

    async def ask() -> None:
        coordinator = make_coordinator(upstream, ledger)
        for _ in range(2):  # the second is a replay, which gives its place back
            await coordinator.answer(make_call(claude_run(), "k"))
        assert coordinator.open_calls() == 0

    run_virtually(ask())
    assert ledger.rows["run-1", "k"].sends == 1
    assert upstream.calls["k"] == 1


def test_the_next_attempt_is_not_turned_away_with_the_one_before() -> None:
    """It joined a call that the attempt before it had made, which then turns out to be over."""

    class Attempts(MemoryLedger):
        current = 1

        async def open(self, opening: Opening) -> Opened:
            await asyncio.sleep(1)
            return NotRunning() if opening.attempt != self.current else await super().open(opening)

    async def ask() -> None:
        ledger, upstream = Attempts(), ScriptedUpstream()
        coordinator = make_coordinator(upstream, ledger)
        old = asyncio.create_task(coordinator.answer(make_call(claude_run(attempt=1), "k")))
        await asyncio.sleep(0.5)
        ledger.current = 2
        new = asyncio.create_task(coordinator.answer(make_call(claude_run(attempt=2), "k")))
        with pytest.raises(GatewayError) as refused:
            await old
        assert refused.value.code is Code.UNAUTHORIZED
        assert (await new).source is Source.BOUGHT
        assert upstream.calls["k"] == 1

    run_virtually(ask())
