"""Evidence: exact where it says exact, valid where it says valid, and equal to what is known in the simple case."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence

import pytest

from orchestrator.schedules.drift.evidence import Record, Tally, bets, chances, interval
from orchestrator.schedules.drift.memory import corrected, excess_of
from orchestrator.stats import exchangeable
from orchestrator.stats.exchangeable import Blocks, bounds, tails
from orchestrator.stats.paired import exact_mcnemar

Test = Callable[[Sequence[Blocks]], tuple[float, float]]


def pairs(lost: int, won: int, both: int = 5, neither: int = 3) -> list[Record]:
    kinds = [(1, 0)] * lost + [(0, 1)] * won + [(1, 1)] * both + [(0, 0)] * neither
    return [Record(((1, before),), ((1, now),)) for before, now in kinds]


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (5, 0), (9, 2), (2, 9), (7, 7), (30, 11)])
def test_with_one_result_each_it_is_mcnemar(lost: int, won: int) -> None:
    assert min(1.0, 2 * min(chances(pairs(lost, won)))) == pytest.approx(exact_mcnemar(lost, won), abs=1e-12)


def arranged(rows: Sequence[tuple[int, ...]]) -> Iterator[list[Blocks]]:
    """Every choice of the block that is the newest, all equally likely if nothing changed."""
    ways = [[Blocks(row[at], row[:at] + row[at + 1 :]) for at in range(len(row))] for row in rows]
    for way in itertools.product(*ways):
        yield list(way)


ROWS = [
    [(0, 1, 1, 1), (0, 0, 1), (1, 1), (3, 0, 2, 2), (5, 1), (0, 0, 0)],
    [(0, 3)] * 8,
    [(10, 10, 0, 10)] * 4,
]


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("test", [tails, bounds])
def test_no_test_exceeds_its_level(rows: list[tuple[int, ...]], test: Test) -> None:
    found = [test(way) for way in arranged(rows)]
    for level in (0.001, 0.01, 0.05, 0.1, 0.2, 0.5):
        for side in (0, 1):
            assert sum(each[side] <= level for each in found) <= level * len(found) + 1e-9


@pytest.mark.parametrize("rows", ROWS)
def test_the_tails_are_exact(rows: list[tuple[int, ...]]) -> None:
    sums = [sum(each.newest for each in way) for way in arranged(rows)]
    for way in itertools.islice(arranged(rows), 0, None, 7):
        seen = sum(each.newest for each in way)
        fewer, more = tails(way)
        assert fewer == pytest.approx(sum(each <= seen for each in sums) / len(sums))
        assert more == pytest.approx(sum(each >= seen for each in sums) / len(sums))
        assert all(bound >= exact * (1 - 1e-9) for bound, exact in zip(bounds(way), (fewer, more), strict=True))


def test_what_is_too_large_for_the_exact_test_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [Blocks(0, (4, 5, 3))] * 30 + [Blocks(5, (5, 4, 4))] * 10
    exact = tails(items)
    monkeypatch.setattr(exchangeable, "EXACT_UP_TO", 0)
    assert tails(items) == bounds(items)
    assert exact[0] < tails(items)[0] < 30 * exact[0]


def test_problems_that_never_vary_say_nothing() -> None:
    some = [Blocks(0, (1, 1, 0))] * 6
    assert tails([*some, *[Blocks(4, (4, 4))] * 50, *[Blocks(0, (0,))] * 50]) == tails(some)
    assert tails([]) == (1.0, 1.0)


def test_blocks_have_equal_shape() -> None:
    one, two, three = (1, 1), (1, 0), (2, 1)
    assert Record((one, two, one, two, one), (one, one)).blocks() == Blocks(2, (1, 1))
    assert Record((one, three, three, one), (three,)).blocks() == Blocks(1, (1, 1)), "runs with as many results"
    assert Record((three, three), (three, one)).blocks() == Blocks(1, (1, 1)), "a sample that is missing"
    assert Record((one,), (one, one)).blocks() is None
    assert Record((three, one), (three, one)).tally == Tally(3, 2, 3, 2)


def test_a_baseline_that_is_too_short_for_blocks_is_bet_on() -> None:
    same = [Record(((1, 1),), ((1, 1),) * 3)] * 20 + [Record(((1, 0),), ((1, 0),) * 3)] * 20
    assert chances(same) == (1.0, 1.0)
    lost = [*same, *[Record(((1, 1),), ((1, 0),) * 3)] * 20]
    assert chances(lost)[0] == bets([record.tally for record in lost])[0] < 1e-4
    assert chances(lost)[1] == 1.0


def test_bets_do_not_win_on_average() -> None:
    """Whatever hangs together within a problem: here all later results are one result, repeated."""
    rng = random.Random(3)
    total = 0.0
    for _ in range(3000):
        tallies = []
        for _ in range(6):
            p = rng.random()
            tallies.append(Tally(1, int(rng.random() < p), 5, 5 * int(rng.random() < p)))
        total += 1 / bets(tallies)[0] > 20
    assert total / 3000 <= 0.05


def test_memory_is_seen_and_allowed_for() -> None:
    rng = random.Random(4)

    def rows(stay: float) -> list[tuple[int, ...]]:
        made = []
        for _ in range(300):
            row = [int(rng.random() < 0.5)]
            for _ in range(29):
                row.append(row[-1] if rng.random() < stay else int(rng.random() < 0.5))
            made.append(tuple(row))
        return made

    assert 1.0 <= excess_of(rows(0.0)) < 1.01
    assert 1.03 < excess_of(rows(0.5)) < 1.1
    assert 1.3 < excess_of(rows(0.9)) < 1.6
    assert excess_of([]) == excess_of([(1, 0)] * 50) == excess_of([(1, 1, 1)] * 50) == 1.0
    assert corrected(1e-6, 1.0) == 1e-6
    assert 1e-6 < corrected(1e-6, 1.4) < 1e-3
    assert corrected(0.7, 2.0) == 0.7
    assert 0 < corrected(1e-300, 1.01) < corrected(1e-200, 1.01) < corrected(1e-11, 1.01) < 1e-10


@pytest.mark.parametrize(("runs", "window", "stay"), [(1, 1, 0.0), (10, 1, 0.0), (30, 7, 0.0), (30, 7, 0.8)])
def test_intervals_cover(runs: int, window: int, stay: float) -> None:
    """95 % intervals of the mean change hold the truth, with few and with many runs, with and without memory."""
    rng = random.Random(5)

    def passed(count: int, chance: float) -> int:
        last, total = rng.random() < chance, 0
        for _ in range(count):
            last = last if rng.random() < stay else rng.random() < chance
            total += last
        return total

    held = 0
    for _ in range(400):
        chosen = [(p, max(0.0, p - 0.05)) for p in (rng.betavariate(0.8, 0.6) for _ in range(80))]
        found = interval([Tally(runs, passed(runs, p), window, passed(window, q)) for p, q in chosen])
        held += found.low <= math.fsum(q - p for p, q in chosen) / len(chosen) <= found.high
    assert held >= 0.93 * 400


def test_nothing_to_compare() -> None:
    assert (interval([]).low, interval([]).high) == (-1.0, 1.0)
    nothing_differs = interval([record.tally for record in pairs(0, 0, both=50, neither=50)])
    assert nothing_differs.low < 0 < nothing_differs.high
