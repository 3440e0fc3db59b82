"""What having an eval written will cost, before it is asked for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.costs.quote import quote
from orchestrator.evals.split import HELD_OUT_SHARE, MOST_LABELLED, NEEDED_PER_LABEL
from orchestrator.gateway.ledger.prices import Prices

FRAME_BYTES = 3_000
MOST_BYTES = 120_000
REPAIRS = 3


@dataclass(frozen=True)
class EvalQuote:
    training: int
    held_out: int
    one_usd: float | None
    """If the first answer is good; None if the price is not known."""
    most_usd: float | None
    """With every repair, each as long as the model may answer."""


@dataclass(frozen=True)
class Missing:
    """Labels that have to be given before anything can be written."""

    positive: int
    negative: int


def eval_quote(
    positive: int, negative: int, sizes: Sequence[int], prices: Prices | None, max_output_tokens: int
) -> EvalQuote | Missing:
    """`sizes` are those of some labelled traces, in bytes."""
    if min(positive, negative) < NEEDED_PER_LABEL:
        return Missing(max(0, NEEDED_PER_LABEL - positive), max(0, NEEDED_PER_LABEL - negative))
    labelled = min(positive + negative, MOST_LABELLED)
    held_out = max(2, round(labelled * HELD_OUT_SHARE))
    training = labelled - held_out
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    prompt = FRAME_BYTES + min(MOST_BYTES, round(mean * training))
    found = [
        quote(items=calls, concurrency=1, prompt_bytes=prompt, max_output_tokens=max_output_tokens, prices=prices, past=())
        for calls in (1, 1 + REPAIRS)
    ]
    return EvalQuote(training, held_out, found[0].worst_case_usd, found[1].worst_case_usd)
