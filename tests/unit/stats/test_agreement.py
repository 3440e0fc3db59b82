"""Agreement of a judge with people, against worked examples."""

from __future__ import annotations

import pytest

from orchestrator.stats.agreement import Agreement, agreement


def test_a_worked_example() -> None:
    """Cohen's example of 50 proposals: 20 both accept, 15 both reject, 5 and 10 differ; kappa is 0.4."""
    counts = Agreement(both_right=20, both_wrong=15, wrongly_passed=10, wrongly_failed=5)
    assert counts.kappa == pytest.approx(0.4)
    assert counts.share is not None
    assert counts.share.estimate == 0.7
    assert (round(counts.share.low, 4), round(counts.share.high, 4)) == (0.5625, 0.809)


def test_verdicts_are_counted_by_what_both_say() -> None:
    pairs = [(True, True), (True, False), (False, True), (False, False), (False, False), (True, None)]
    assert agreement(pairs) == Agreement(1, 2, 1, 1, 1)


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [
        (Agreement(), None),
        (Agreement(unjudged=3), None),
        (Agreement(both_right=9), None),
        (Agreement(both_right=5, both_wrong=5), 1.0),
        (Agreement(wrongly_passed=5, wrongly_failed=5), -1.0),
        (Agreement(both_right=5, wrongly_passed=5), 0.0),
    ],
)
def test_kappa_at_its_limits(counts: Agreement, kappa: float | None) -> None:
    assert counts.kappa == kappa
    assert (counts.share is None) == (counts.judged == 0)
