"""What an attempt used over time, kept small: at most `MOST` samples, spread evenly over its life. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from runner.contract.events import UsageSample

MOST = 240
Stored = list[float | None]
"""[at_s, cpu_s, memory_bytes, throttled_s]: counters since the beginning; of memory the most since the sample before."""


@dataclass(frozen=True)
class UsagePoint:
    """The time from one sample to the next, as rates."""

    at_s: float
    vcpu: float
    memory_bytes: float
    throttled: float | None
    """The share of the time in which it was held back, of one core."""


def merged(kept: Sequence[Stored], fresh: Sequence[UsageSample], most: int = MOST) -> list[Stored]:
    """With the new samples, in order of time; what was there already is not taken again."""
    samples = [list(each) for each in kept]
    for sample in sorted(fresh, key=lambda each: each.at_s):
        if not samples or sample.at_s > _at(samples[-1]):
            samples.append([sample.at_s, sample.cpu_s, sample.memory_bytes, sample.throttled_s])
    while len(samples) > most:
        _join_closest(samples)
    return samples


def points(samples: Sequence[Stored]) -> list[UsagePoint]:
    """Rates between the samples; a counter that went back counts as zero."""
    found = []
    for before, after in pairwise(samples):
        took = _at(after) - _at(before)
        if took <= 0:
            continue
        held = None if after[3] is None or before[3] is None else max(0.0, after[3] - before[3]) / took
        found.append(UsagePoint(_at(after), max(0.0, (after[1] or 0) - (before[1] or 0)) / took, after[2] or 0, held))
    return found


def _join_closest(samples: list[Stored]) -> None:
    """Take out the sample whose neighbours are nearest to each other; the most memory is remembered in the next one."""
    index = min(range(1, len(samples) - 1), key=lambda i: _at(samples[i + 1]) - _at(samples[i - 1]))
    gone = samples.pop(index)
    samples[index][2] = max(gone[2] or 0, samples[index][2] or 0)


def _at(sample: Stored) -> float:
    return sample[0] or 0.0
