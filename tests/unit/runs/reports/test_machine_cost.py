"""What runs use of machines: sums, costs, and the signs of too little."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.runs.reports.machine_cost import (
    GIB,
    LastHour,
    LastReading,
    MachineUsage,
    Rates,
    Stored,
    gib_s_after,
    last_reading,
    signs,
    used_after,
)
from runner.contract.events import UsageSample


def sample(at_s: float, cpu_s: float, gib: float, throttled_s: float | None = None) -> UsageSample:
    return UsageSample(at_s=at_s, cpu_s=cpu_s, memory_bytes=int(gib * GIB), throttled_s=throttled_s)


LAST = '{"action": "runner.gone", "began_s": 7, "before_s": 0.5, "per_second": 1e6, "at_s": 9.25, "used": 2000000}'


@pytest.mark.parametrize(
    ("tail", "found"),
    [
        (f'{{"action": "x"}}\n{LAST}\n', LastReading(1.5, 2.25)),
        (LAST.replace("1e6", "1e9"), LastReading(0.0, 2.25)),
        (f"{LAST}\nKilled\n", None),
        (LAST.replace("2000000", ""), None),
        (LAST.replace("1e6", "0"), None),
        (LAST.replace('"at_s"', '"at"'), None),
        ('{"action": "run.done"}', None),
        ("[1]", None),
        ("", None),
    ],
)
def test_the_last_line_of_a_log_says_what_was_used_in_all(tail: str, found: LastReading | None) -> None:
    assert last_reading(tail) == found


def test_processor_is_a_counter_and_memory_is_summed_over_time() -> None:
    used = used_after(MachineUsage(), [], [sample(10, 4, 0.5), sample(20, 9, 1.0, 2.5)])
    assert used == MachineUsage(vcpu_s=9, gib_s=10 * 0.25 + 10 * 0.75, throttled_s=2.5)


def test_what_was_told_before_counts_once() -> None:
    first = used_after(MachineUsage(), [], [sample(10, 4, 0.5)])
    kept = [[10, 4, 0.5 * GIB, None]]
    again = used_after(first, kept, [sample(10, 4, 0.5), sample(30, 5, 1.0)])
    assert again == MachineUsage(vcpu_s=5, gib_s=2.5 + 20 * 0.75)
    assert used_after(first, kept, [sample(10, 4, 0.5)]) == first


def test_costs_go_by_the_hour() -> None:
    assert Rates(0.04, 0.005).cost(3600, 7200) == pytest.approx(0.05)
    assert Rates().cost(3600, 7200) == 0


QUIET = LastHour(starts=10, refused=0, mean_wait_s=2, longest_wait_s=5, running_s=100, throttled_s=1)


@pytest.mark.parametrize(
    ("hour", "oldest_s", "words"),
    [
        pytest.param(QUIET, 5, [], id="quiet"),
        pytest.param(LastHour(), 0, [], id="nothing at all"),
        pytest.param(QUIET, 600, ["waiting for 10 min"], id="queue"),
        pytest.param(replace(QUIET, mean_wait_s=75, longest_wait_s=7200), 0, ["75 s on average, 2.0 h at most"], id="waits"),
        pytest.param(replace(QUIET, refused=3), 0, ["3 of 10 starts"], id="refused"),
        pytest.param(replace(QUIET, throttled_s=40), 0, ["for 40%"], id="held back"),
    ],
)
def test_signs(hour: LastHour, oldest_s: float, words: list[str]) -> None:
    found = signs(hour, oldest_s)
    assert len(found) == len(words)
    assert all(word in sentence for word, sentence in zip(words, found, strict=True))


def test_the_time_from_the_last_sample_to_the_end_counts_as_the_last_sample() -> None:
    kept: list[Stored] = [[10.0, 4.0, GIB / 2, None], [20.0, 9.0, GIB, None]]
    assert gib_s_after(kept, 20.5) == pytest.approx(0.5)
    assert gib_s_after(kept, 19.0) == 0, "a clock that differs"
    assert gib_s_after(kept, 4000.0) == 0
    assert gib_s_after([], 5.0) == 0
