"""Estimates the cost and duration of a run before it starts, as ranges. Pure.

If there are past runs of the same model and benchmarks, it uses their tokens and seconds per item, at current prices.
Otherwise it uses the prompt sizes and the limit of output tokens, which only gives bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from orchestrator.gateway.ledger.prices import Prices, cost_nano_usd, usd, worst_case_nano_usd
from orchestrator.gateway.protocols.protocol import TokenUsage
from runner.contract.run_spec import ModelSpec

DEFAULT_MAX_TOKENS = int(ModelSpec.model_fields["max_tokens"].default)
BYTES_PER_TOKEN = 4
BETWEEN_TURNS_BYTES = 1000
"""Approximate size of what is said between two answers of a conversation."""
ONE_RUN_SPREAD = 0.3
"""The spread assumed either way if there is only one past run, which says nothing about the spread."""


class Source(StrEnum):
    """The basis of a quote."""

    PAST_RUNS = "past_runs"  #: earlier runs of this model and these benchmarks
    TOKEN_LIMITS = "token_limits"  # noqa: S105 #: prompt sizes and the model's limit of output tokens


@dataclass(frozen=True)
class PastRun:
    items: int
    concurrency: int
    input_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True)
class Range:
    low: float
    high: float
    expected: float | None = None


@dataclass(frozen=True)
class Quote:
    """Costs are None if the price is unknown; times are None if the model's speed is unknown."""

    source: Source
    runs_used: int
    cost_usd: Range | None
    seconds: Range | None
    worst_case_usd: float | None
    turns: int = 1
    """The most answers of the model per item."""


def quote(
    *,
    items: int | Mapping[int, int],
    concurrency: int,
    prompt_bytes: int,
    max_output_tokens: int,
    prices: Prices | None,
    past: Sequence[PastRun],
) -> Quote:
    """`items` says how many there are, or how many may take how many turns; `prompt_bytes` is the mean size of a prompt."""
    by_turns: Mapping[int, int] = {1: items} if isinstance(items, int) else items
    count, turns = sum(by_turns.values()), max(by_turns, default=1)
    worst = None if prices is None else _worst_usd(by_turns, prompt_bytes, max_output_tokens, prices)
    if past:
        at_once = min(concurrency, count)
        times = [run.seconds * min(run.concurrency, run.items) / run.items * count / at_once for run in past]
        costs = (
            None
            if prices is None
            else [count * _cost(r.input_tokens / r.items, r.output_tokens / r.items, prices) for r in past]
        )
        return Quote(Source.PAST_RUNS, len(past), None if costs is None else _spread(costs), _spread(times), worst, turns)
    cost = None
    if prices is not None and worst is not None:
        cost = Range(low=count * _cost(prompt_bytes / BYTES_PER_TOKEN, 0, prices), high=worst)
    return Quote(Source.TOKEN_LIMITS, 0, cost, None, worst, turns)


def _worst_usd(by_turns: Mapping[int, int], prompt_bytes: int, max_output_tokens: int, prices: Prices) -> float:
    """Each turn is asked with everything that was said before it, every answer as long as it may be."""
    more = BYTES_PER_TOKEN * max_output_tokens + BETWEEN_TURNS_BYTES
    return sum(
        count * sum(usd(worst_case_nano_usd(prompt_bytes + turn * more, max_output_tokens, prices)) for turn in range(turns))
        for turns, count in by_turns.items()
    )


@dataclass(frozen=True)
class JudgeQuote:
    """What the model that judges a benchmark adds. Costs are None if its price is unknown."""

    model: str
    calls: int
    cost_usd: Range | None
    worst_case_usd: float | None


def judge_quote(
    *,
    model: str,
    items: int,
    samples: int,
    prompt_bytes: int,
    answer_tokens: int,
    max_output_tokens: int,
    prices: Prices | None,
    past_usd_per_item: Sequence[float] = (),
) -> JudgeQuote:
    """`prompt_bytes` is the mean size of the judge's prompt without the answer, `answer_tokens` the most that the measured
    model may write, all of which the judge reads; the past costs are those of the judge in earlier runs."""
    calls = items * samples
    if prices is None:
        return JudgeQuote(model, calls, None, None)
    most = prompt_bytes + BYTES_PER_TOKEN * answer_tokens
    worst = calls * usd(worst_case_nano_usd(most, max_output_tokens, prices))
    if past_usd_per_item:
        return JudgeQuote(model, calls, _spread([items * cost for cost in past_usd_per_item]), worst)
    low = calls * _cost(prompt_bytes / BYTES_PER_TOKEN, 0, prices)
    return JudgeQuote(model, calls, Range(low=low, high=worst), worst)


def with_judges(quote: Quote, judges: Sequence[JudgeQuote]) -> Quote:
    """The quote of a run with the cost of its judges added; a sum is unknown if one of its parts is."""
    cost, worst = quote.cost_usd, quote.worst_case_usd
    for judge in judges:
        cost = None if cost is None or judge.cost_usd is None else _sum(cost, judge.cost_usd)
        worst = None if worst is None or judge.worst_case_usd is None else worst + judge.worst_case_usd
    return replace(quote, cost_usd=cost, worst_case_usd=worst)


def _sum(one: Range, other: Range) -> Range:
    expected = None if one.expected is None or other.expected is None else one.expected + other.expected
    return Range(one.low + other.low, one.high + other.high, expected)


def sentence(quote: Quote, slug: str, *, priced: bool) -> str:
    """The quote as a sentence."""
    parts = []
    if not priced:
        parts.append(f"{slug} has no price: the cost is unknown and budgets cannot be used. Set its prices.")
    if quote.source is Source.TOKEN_LIMITS:
        parts.append("No earlier run of this model on these benchmarks: bounds come from prompt sizes and token limits.")
    elif quote.runs_used == 1:
        parts.append("Estimated from one earlier run.")
    else:
        parts.append(f"Estimated from {quote.runs_used} earlier runs.")
    if quote.turns > 1 and quote.worst_case_usd is not None:
        parts.append(f"The model may answer up to {quote.turns} times per item; the worst case counts all of them.")
    return " ".join(parts)


def judge_sentence(judge: JudgeQuote) -> str:
    if judge.worst_case_usd is None:
        return f"The judge {judge.model} has no price: its cost is unknown. Set its prices."
    return f"The judge {judge.model} is asked {judge.calls} times, for at most ${judge.worst_case_usd:.4f} of that."


def _cost(input_tokens: float, output_tokens: float, prices: Prices) -> float:
    return usd(cost_nano_usd(TokenUsage(round(input_tokens), round(output_tokens)), prices))


def _spread(values: list[float]) -> Range:
    mean = sum(values) / len(values)
    if len(values) == 1:
        return Range((1 - ONE_RUN_SPREAD) * mean, (1 + ONE_RUN_SPREAD) * mean, mean)
    return Range(min(values), max(values), mean)
