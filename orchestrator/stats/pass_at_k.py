"""pass@k: the probability that at least one of k samples passes, estimated without bias from n >= k samples."""

from __future__ import annotations

from collections.abc import Sequence

REPORTED_K = (1, 2, 5, 10, 20, 50, 100)


def pass_at_k(samples: int, passed: int, k: int) -> float:
    """`1 - C(n-c, k) / C(n, k)` for one problem, as a product that never overflows."""
    if not 0 <= passed <= samples:
        raise ValueError(f"{passed} of {samples} samples cannot have passed")
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} needs between 1 and {samples} samples")
    if samples - passed < k:
        return 1.0
    none_right = 1.0
    for n in range(samples - passed + 1, samples + 1):
        none_right *= 1.0 - k / n
    return 1.0 - none_right


def mean_pass_at_k(problems: Sequence[tuple[int, int]], k: int) -> float:
    """The mean over problems, each (samples, passed)."""
    return sum(pass_at_k(samples, passed, k) for samples, passed in problems) / len(problems)


def possible_k(problems: Sequence[tuple[int, int]]) -> list[int]:
    """The usual values of k for which every problem has enough samples, and the largest such value."""
    least = min((samples for samples, _ in problems), default=0)
    return sorted({k for k in REPORTED_K if k <= least} | ({least} if least else set()))
