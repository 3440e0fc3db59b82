"""Thousands of series at once, with the product's own evidence: how often does it alarm, and how soon?

`python -m tests.unit.schedules.drift_simulation 2000` prints the figures of docs/schedules.md, with those of an unpaired
test of each day against a fixed level beside them.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from orchestrator.schedules.drift import WINDOWS, threshold
from orchestrator.schedules.evidence import BETS, log_mgf

POOL = 30


@dataclass(frozen=True)
class World:
    """How hard the problems are, and what happens to the model."""

    series: int
    problems: int = 200
    days: int = 365
    drop: float = 0.0
    at: int = 0
    """The first day of the drop."""
    shape: tuple[float, float] = (0.6, 0.4)
    seed: int = 0
    pool: int = POOL


def results(world: World) -> np.ndarray:
    """Passes: series x days x problems."""
    rng = np.random.default_rng(world.seed)
    chance = rng.beta(*world.shape, size=(world.series, world.problems))
    after = lowered(chance, world.drop)
    days = np.arange(world.days)[None, :, None]
    out = np.empty((world.series, world.days, world.problems), dtype=np.int8)
    for start in range(0, world.series, 100):
        part = slice(start, start + 100)
        now = np.where(days >= world.at, after[part, None, :], chance[part, None, :])
        out[part] = rng.random(now.shape, dtype=np.float32) < now
    return out


def lowered(chance: np.ndarray, drop: float) -> np.ndarray:
    """The same problems for a model whose log odds are lower, such that the mean is lower by `drop` in each series."""
    if drop == 0:
        return chance
    safe = np.clip(chance, 1e-9, 1 - 1e-9)
    odds = np.log(safe / (1 - safe))
    low, high = np.zeros((len(chance), 1)), np.full((len(chance), 1), 30.0)
    for _ in range(40):
        shift = (low + high) / 2
        too_far = chance.mean(1, keepdims=True) - (1 / (1 + np.exp(shift - odds))).mean(1, keepdims=True) > drop
        high, low = np.where(too_far, shift, high), np.where(too_far, low, shift)
    return 1 / (1 + np.exp(shift - odds))


def log_evidence_of(passes: np.ndarray, day: int, pool: int) -> dict[int, np.ndarray]:
    """Of look `day` (from 0) of each series, by direction: what `drift.compare` computes, for all series at once."""
    rows = len(passes)
    collected: dict[int, list[np.ndarray]] = {-1: [], 1: []}
    for window in WINDOWS:
        earlier = min(pool, day + 1 - window)
        if earlier < 1:
            continue
        later = passes[:, day + 1 - window : day + 1].sum(1, dtype=np.int16)
        total = later + passes[:, day + 1 - window - earlier : day + 1 - window].sum(1, dtype=np.int16)
        size = earlier + window
        counts = np.bincount((np.arange(rows)[:, None] * (size + 1) + total).ravel(), minlength=rows * (size + 1))
        counts = counts.reshape(rows, size + 1)
        sums = later.sum(1, dtype=np.int64)
        for sign, logs in collected.items():
            table = np.array([[log_mgf(size, passed, window, sign * bet) for bet in BETS] for passed in range(size + 1)])
            logs.append(sign * np.outer(sums, BETS) - counts @ table)
    return {sign: _log_mean(np.concatenate(logs, axis=1)) for sign, logs in collected.items() if logs}


def _log_mean(logs: np.ndarray) -> np.ndarray:
    top = logs.max(1)
    return top + np.log(np.exp(logs - top[:, None]).mean(1))


def first_alarms(passes: np.ndarray, *, alarm_rate: float = 0.05, pool: int = POOL) -> dict[int, np.ndarray]:
    """By direction: the day of the first alarm of each series, or -1."""
    found = {sign: np.full(len(passes), -1) for sign in (-1, 1)}
    for day in range(1, passes.shape[1]):
        needed = math.log(threshold(day + 1, alarm_rate))
        for sign, logs in log_evidence_of(passes, day, pool).items():
            found[sign][(logs >= needed) & (found[sign] < 0)] = day
    return found


def unpaired_alarms(passes: np.ndarray, *, level: float = 0.05) -> np.ndarray:
    """The usual way: each day's score against the first day's, as two independent samples, with a fixed level."""
    size = passes.shape[2]
    share = passes.mean(2)
    pooled = (share + share[:, :1]) / 2
    error = np.sqrt(2 * pooled * (1 - pooled) / size)
    z = np.abs(share - share[:, :1]) / np.maximum(error, 1e-12)
    hit = z > NormalDist().inv_cdf(1 - level / 2)
    return np.where(hit.any(1), hit.argmax(1), -1)


def found_within(alarms: np.ndarray, at: int, days: int) -> float:
    """Share of series, of those without an earlier alarm, that alarm within `days` days of the drop."""
    fair = (alarms < 0) | (alarms >= at)
    return float(((alarms >= at) & (alarms < at + days))[fair].mean())


def main(series: int) -> None:
    quiet = results(World(series))
    alarms = first_alarms(quiet)
    false = float(((alarms[-1] >= 0) | (alarms[1] >= 0)).mean())
    print(f"no change, 365 looks, {series} series: false alarms {false:.2%} (stated: at most 5 %)")
    print(f"  unpaired test of each day, level 5 %: {float((unpaired_alarms(quiet) >= 0).mean()):.2%}")
    del quiet
    for at, shape in ((30, (0.6, 0.4)), (180, (0.6, 0.4)), (30, (3.0, 2.0))):
        world = World(series, days=at + 11, drop=0.08, at=at, shape=shape, seed=1)
        passes = results(world)
        share = found_within(first_alarms(passes)[-1], at, 10)
        fresh = found_within(unpaired_alarms(passes[:, [0, *range(at, at + 10)]]), 1, 10)
        print(
            f"drop of 8 points on day {at}, difficulty beta{shape}: found within 10 days {share:.1%}, unpaired {fresh:.1%}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
