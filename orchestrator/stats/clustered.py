"""The standard error of a mean of clustered observations: samples of one problem are not independent.

Ten samples each of 100 problems are 1,000 observations, but say little more about other problems than 100 do. The clustered
standard error includes the covariance within a problem; with one sample each it is the ordinary one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from orchestrator.stats.intervals import LEVEL, Interval, wilson
from orchestrator.stats.student import t_quantile


def clustered_standard_error(clusters: Sequence[Sequence[float]]) -> float:
    """The standard error of the mean of all observations; each inner sequence holds those of one problem."""
    clusters = [cluster for cluster in clusters if cluster]
    count = sum(map(len, clusters))
    if count == 0:
        return 0.0
    mean = math.fsum(value for cluster in clusters for value in cluster) / count
    return math.sqrt(math.fsum(math.fsum(value - mean for value in cluster) ** 2 for cluster in clusters)) / count


def clustered_interval(clusters: Sequence[Sequence[float]], level: float = LEVEL) -> Interval:
    """The interval for a mean of observations between 0 and 1 in clusters.

    For successes and failures this is Wilson's interval with the effective number of trials: the number of independent
    trials with the same standard error, at most one per observation. It therefore stays within 0..1 and equals Wilson's with
    one sample per problem. If all observations agree, the error cannot be estimated, and the number of problems is used. For
    other observations, see `_mean_interval`.
    """
    clusters = [cluster for cluster in clusters if cluster]
    observations = sum(map(len, clusters))
    if observations == 0:
        return wilson(0, 0, level)
    share = math.fsum(value for cluster in clusters for value in cluster) / observations
    if any(value not in (0, 1) for cluster in clusters for value in cluster):
        return _mean_interval(clusters, share, level)
    trials = float(len(clusters))
    if 0 < share < 1 and observations > len(clusters):  # with one each, the observations are the trials
        variance = clustered_standard_error(clusters) ** 2
        trials = observations if variance == 0 else min(max(share * (1 - share) / variance, 1.0), observations)
    interval = wilson(share * trials, trials, level)
    return Interval(share, interval.low, interval.high)


def _mean_interval(clusters: Sequence[Sequence[float]], mean: float, level: float) -> Interval:
    """Wilson's interval with as many trials as would have the observed standard error, and Student's critical value.

    Observations within 0..1 vary at most as much as successes and failures with the same mean; the error is estimated from
    the problems, so few of them need a wider interval. One imaginary problem that succeeds or fails keeps the interval from
    collapsing if the observations agree by chance.
    """
    problems = len(clusters)
    if problems < 2:
        return Interval(mean, *_bounds(wilson(mean, 1, level)))
    variance = clustered_standard_error(clusters) ** 2 * problems / (problems - 1)
    most = mean * (1 - mean)
    trials = most / (variance + most / problems**2)
    return Interval(mean, *_bounds(wilson(mean * trials, trials, level, t_quantile(level, problems - 1))))


def _bounds(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high
