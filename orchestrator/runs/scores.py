"""The score of a run from its stored verdicts: both denominators, an interval, and whether it may be compared. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.stats.intervals import wilson
from runner.contract import NOT_THE_MODELS_FAULT, Outcome

COMPARABLE_SHARE = 0.02

Verdict = tuple[str, str, int, str]
"""(benchmark, problem, sample, outcome)"""


def score_of(verdicts: Sequence[Verdict], *, cut_short: bool = False) -> dict[str, Any] | None:
    """Pass rate with a 95 % Wilson interval; None while there is nothing to score."""
    if not verdicts:
        return None
    counted = [outcome for _, _, _, outcome in verdicts if Outcome(outcome) not in NOT_THE_MODELS_FAULT]
    passed = sum(outcome == Outcome.PASSED for outcome in counted)
    left_out = len(verdicts) - len(counted)
    comparable = not cut_short and left_out <= COMPARABLE_SHARE * len(verdicts)
    score: dict[str, Any] = {
        "estimate": None,
        "low": None,
        "high": None,
        "n": len(counted),
        "passed": passed,
        "n_all": len(verdicts),
        "estimate_all": passed / len(verdicts),
        "comparable": comparable,
    }
    if counted:
        interval = wilson(passed, len(counted))
        score |= {"estimate": passed / len(counted), "low": interval.low, "high": interval.high}
    return score
