"""Estimates the cost and duration of a run before it starts, as ranges. Pure.

If there are past runs of the same model and benchmarks, it uses their tokens and seconds per item, at current prices.
Otherwise it uses the prompt sizes and the limit of output tokens, which only gives bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.gateway.ledger.prices import Prices, cost_nusd, usd, worst_case_nusd
from orchestrator.gateway.protocols.protocol import TokenUsage
from runner.contract.run_spec import ModelSpec

DEFAULT_MAX_TOKENS = int(ModelSpec.model_fields["max_tokens"].default)
BYTES_PER_TOKEN = 4
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


def quote(
    *,
    items: int,
    concurrency: int,
    prompt_bytes: int,
    max_output_tokens: int,
    prices: Prices | None,
    past: Sequence[PastRun],
) -> Quote:
    """`prompt_bytes` is the mean size of a prompt."""
    worst = None if prices is None else items * usd(worst_case_nusd(prompt_bytes, max_output_tokens, prices))
    if past:
        at_once = min(concurrency, items)
        times = [run.seconds * min(run.concurrency, run.items) / run.items * items / at_once for run in past]
        costs = (
            None
            if prices is None
            else [items * _cost(r.input_tokens / r.items, r.output_tokens / r.items, prices) for r in past]
        )
        return Quote(Source.PAST_RUNS, len(past), None if costs is None else _spread(costs), _spread(times), worst)
    cost = None
    if prices is not None and worst is not None:
        cost = Range(low=items * _cost(prompt_bytes / BYTES_PER_TOKEN, 0, prices), high=worst)
    return Quote(Source.TOKEN_LIMITS, 0, cost, None, worst)


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
    return " ".join(parts)


def _cost(input_tokens: float, output_tokens: float, prices: Prices) -> float:
    return usd(cost_nusd(TokenUsage(round(input_tokens), round(output_tokens)), prices))


def _spread(values: list[float]) -> Range:
    mean = sum(values) / len(values)
    if len(values) == 1:
        return Range((1 - ONE_RUN_SPREAD) * mean, (1 + ONE_RUN_SPREAD) * mean, mean)
    return Range(min(values), max(values), mean)
