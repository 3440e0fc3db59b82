"""Which problems models are compared on by default: the largest set that is common to them. Pure.

A small run must not displace a large one, however recent or popular it is: samples with less than half of the problems
of the largest one are not considered. Among the others, the one with the most results (models times problems) is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

SampleType = TypeVar("SampleType")
SMALLEST_SHARE = 0.5


def by_common_size(
    samples: Sequence[SampleType],
    problems: Callable[[SampleType], int],
    models: Callable[[SampleType], int],
    *,
    least_models: int = 1,
) -> list[SampleType]:
    """Samples, the one to compare on first. Those of fewer than `least_models` models come last."""
    shared = [sample for sample in samples if models(sample) >= least_models] or list(samples)
    largest = max((problems(sample) for sample in shared), default=0)

    def rank(sample: SampleType) -> tuple[bool, bool, int, int]:
        small = problems(sample) < SMALLEST_SHARE * largest
        return models(sample) < least_models, small, -models(sample) * problems(sample), -problems(sample)

    return sorted(samples, key=rank)
