"""Looks at thousands of series: numpy says where an alarm is thinkable, the product's own test says whether there is one."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from orchestrator.schedules.drift.evidence import chances
from orchestrator.schedules.drift.series import WINDOWS, Baseline, Look, records, threshold
from tests.bench.drift.worlds import MISSING, World, results

POOL = 30
CHUNK = 50
MARGIN = 0.5
"""Standard deviations below the normal approximation of the alarm at which the product is asked."""


def first_alarms(world: World, *, alarm_rate: float = 0.05, pool: int = POOL) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """By direction (-1 worse, 1 better) the day of the first alarm of each series, or -1; the same for the usual test."""
    found: dict[int, list[np.ndarray]] = {-1: [], 1: []}
    usual = []
    for start in range(0, world.series, CHUNK):
        passes = results(world, slice(start, start + CHUNK))
        for sign, days in alarms_of(passes, world.samples, alarm_rate=alarm_rate, pool=pool).items():
            found[sign].append(days)
        usual.append(unpaired_alarms(passes, world))
    return {sign: np.concatenate(days) for sign, days in found.items()}, np.concatenate(usual)


def alarms_of(passes: np.ndarray, samples: int, *, alarm_rate: float, pool: int) -> dict[int, np.ndarray]:
    sums = _running_sums(passes)
    found = {sign: np.full(len(passes), -1) for sign in (-1, 1)}
    for day in range(1, passes.shape[1]):
        windows = [window for window in WINDOWS if window <= day]
        level = 1 / (2 * len(windows) * threshold(day + 1, alarm_rate))
        near = NormalDist().inv_cdf(1 - level) - MARGIN
        for window in windows:
            z = _scores(sums, day, window, min(pool, day + 1 - window))
            for sign in (-1, 1):
                for row in np.flatnonzero((sign * z > near) & (found[sign] < 0)):
                    if chance(passes[row], day, window, pool, samples)[(sign + 1) // 2] <= level:
                        found[sign][row] = day
    return found


def chance(series: np.ndarray, day: int, window: int, pool: int, samples: int) -> tuple[float, float]:
    """Of one window of one look: what `drift.compare` asks `evidence` for."""
    first = max(0, day + 1 - window - pool)
    looks = [a_look(series[at], samples) for at in range(day, first - 1, -1)]
    return chances(list(records(looks, window, Baseline(runs=pool)).values()))


def a_look(row: np.ndarray, samples: int) -> Look:
    return Look("", None, {("b", str(item)): (samples, int(each)) for item, each in enumerate(row) if each != MISSING})


def _running_sums(passes: np.ndarray) -> np.ndarray:
    """Sums up to each day; a missing result counts as the problem's mean, which is near enough to choose by."""
    there = passes != MISSING
    mean = np.where(there, passes, 0).sum(1) / np.maximum(there.sum(1), 1)
    filled = np.where(there, passes, mean[:, None, :]).astype(np.float32)
    sums = np.zeros((len(passes), passes.shape[1] + 1, passes.shape[2]), dtype=np.float32)
    np.cumsum(filled, axis=1, out=sums[:, 1:])
    return sums


def _scores(sums: np.ndarray, day: int, window: int, earlier: int) -> np.ndarray:
    """How many standard deviations the newest block is from the mean of all, in each series."""
    newest = sums[:, day + 1] - sums[:, day + 1 - window]
    blocks = earlier // window
    if blocks == 0:  # the product bets; take the changes' own spread
        change = newest / window - (sums[:, day + 1 - window] - sums[:, day + 1 - window - earlier]) / earlier
        centred, variance = change.sum(1), (change**2).sum(1)
    else:
        ends = [day + 1 - number * window for number in range(blocks + 1)]
        each = np.stack([sums[:, end] - sums[:, end - window] for end in ends])
        centred, variance = (newest - each.mean(0)).sum(1), each.var(0).sum(1)
    scores: np.ndarray = centred / np.sqrt(np.maximum(variance, 1e-9))
    return scores


def unpaired_alarms(passes: np.ndarray, world: World, *, level: float = 0.05) -> np.ndarray:
    """The usual way: each day's score against one day before, as two independent samples, with a fixed level.

    With a drop, the day before is the last one without it, and nothing is looked at until then: the best case.
    """
    base = max(0, world.at - 1)
    there = (passes != MISSING).sum(2) * world.samples
    share = np.where(passes == MISSING, 0, passes).sum(2) / there
    pooled = (share + share[:, base : base + 1]) / 2
    error = np.sqrt(pooled * (1 - pooled) * (1 / there + 1 / there[:, base : base + 1]))
    hit = np.abs(share - share[:, base : base + 1]) / np.maximum(error, 1e-12) > NormalDist().inv_cdf(1 - level / 2)
    hit[:, : base + 1] = False
    first: np.ndarray = np.where(hit.any(1), hit.argmax(1), -1)
    return first


def found_within(alarms: np.ndarray, at: int, days: int) -> float:
    """Share of series, of those without an earlier alarm, that alarm within `days` days of the drop."""
    fair = (alarms < 0) | (alarms >= at)
    return float(((alarms >= at) & (alarms < at + days))[fair].mean())


def false_alarms(alarms: dict[int, np.ndarray]) -> float:
    """Share of series with an alarm in either direction."""
    return float(((alarms[-1] >= 0) | (alarms[1] >= 0)).mean())
