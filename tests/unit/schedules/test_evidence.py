"""Evidence: exact where it says exact, valid where it says valid, and equal to what is known in the simple case."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from orchestrator.schedules import evidence
from orchestrator.schedules.evidence import Tally, exact_p_value, interval, log_evidence, log_mgf
from orchestrator.stats.paired import exact_mcnemar


def pairs(lost: int, won: int, both: int = 5, neither: int = 3) -> list[Tally]:
    kinds = [(1, 0)] * lost + [(0, 1)] * won + [(1, 1)] * both + [(0, 0)] * neither
    return [Tally(1, before, 1, now) for before, now in kinds]


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (5, 0), (9, 2), (2, 9), (7, 7), (30, 11)])
def test_with_one_result_each_it_is_mcnemar(lost: int, won: int) -> None:
    assert exact_p_value(pairs(lost, won)) == pytest.approx(exact_mcnemar(lost, won), abs=1e-12)


def permuted(tallies: Sequence[Tally]) -> list[tuple[list[Tally], float]]:
    """Every way the passes could lie, with its chance if nothing changed."""
    ways = []
    for tally in tallies:
        low, high = max(0, tally.passed - tally.earlier), min(tally.passed, tally.later)
        whole = math.comb(tally.results, tally.later)
        ways.append(
            [
                (
                    Tally(tally.earlier, tally.passed - count, tally.later, count),
                    math.comb(tally.passed, count) * math.comb(tally.results - tally.passed, tally.later - count) / whole,
                )
                for count in range(low, high + 1)
            ]
        )
    return [([t for t, _ in way], math.prod(p for _, p in way)) for way in itertools.product(*ways)]


SMALL = [Tally(3, 2, 2, 0), Tally(2, 1, 1, 0), Tally(4, 4, 2, 2), Tally(1, 0, 3, 2), Tally(3, 1, 3, 1)]


@pytest.mark.parametrize("direction", [-1, 1])
def test_the_mean_of_the_evidence_is_one(direction: int) -> None:
    ways = permuted(SMALL)
    assert sum(chance for _, chance in ways) == pytest.approx(1)
    assert sum(chance * math.exp(log_evidence(way, direction)) for way, chance in ways) == pytest.approx(1)


@pytest.mark.parametrize("level", [0.01, 0.05, 0.1, 0.2, 0.5])
def test_the_exact_test_never_exceeds_its_level(level: float) -> None:
    assert sum(chance for way, chance in permuted(SMALL) if exact_p_value(way) <= level) <= level + 1e-12


def test_beyond_the_exact_size_the_bound_is_still_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = {tuple(way): exact_p_value(way) for way, _ in permuted(SMALL)}
    monkeypatch.setattr(evidence, "EXACT_UP_TO", 0)
    for level in (0.05, 0.2, 0.5):
        assert sum(chance for way, chance in permuted(SMALL) if exact_p_value(way) <= level) <= level
    assert all(exact_p_value(way) >= exact[tuple(way)] * 0.99 for way, _ in permuted(SMALL))


def test_problems_that_never_vary_say_nothing() -> None:
    some = pairs(4, 1, both=0, neither=0)
    more = some + [Tally(30, 30, 10, 10)] * 50 + [Tally(30, 0, 10, 0)] * 50
    assert exact_p_value(more) == exact_p_value(some)
    assert log_evidence(more, -1) == pytest.approx(log_evidence(some, -1))


def test_many_results_do_not_overflow() -> None:
    assert math.isfinite(log_mgf(4000, 1500, 2000, -2.0))
    assert exact_p_value([Tally(300, 200, 200, 100)] * 20) < 1e-6


def test_intervals_cover() -> None:
    """95 % intervals of the mean change hold the truth, with few and with many runs on the earlier side."""
    rng = random.Random(5)
    for runs, window in ((1, 1), (10, 1), (30, 7)):
        held = 0
        for _ in range(400):
            chances = [(p, max(0.0, p - 0.05)) for p in (rng.betavariate(0.8, 0.6) for _ in range(80))]
            tallies = [
                Tally(runs, sum(rng.random() < p for _ in range(runs)), window, sum(rng.random() < q for _ in range(window)))
                for p, q in chances
            ]
            found = interval(tallies)
            held += found.low <= sum(q - p for p, q in chances) / len(chances) <= found.high
        assert held >= 0.93 * 400, (runs, window)


def test_nothing_to_compare() -> None:
    assert exact_p_value([]) == 1.0
    assert (interval([]).low, interval([]).high) == (-1.0, 1.0)
    nothing_differs = interval(pairs(0, 0, both=50, neither=50))
    assert nothing_differs.low < 0 < nothing_differs.high
