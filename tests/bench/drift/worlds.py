"""Models that answer the same problems every day: of any difficulty, with or without memory, samples, errors, and a drop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MISSING = -1


@dataclass(frozen=True)
class World:
    series: int
    problems: int = 200
    days: int = 365
    drop: float = 0.0
    at: int = 0
    """The first day of the drop."""
    over: int = 1
    """Days until the drop is complete."""
    subset: bool = False
    """The drop is that some problems, solved before, are never solved again; else the log odds of all are lower."""
    shape: tuple[float, float] = (0.6, 0.4)
    """Chances of the problems are drawn from this beta distribution."""
    stay: float = 0.0
    """Chance that a problem's answer is that of the day before."""
    samples: int = 1
    errors: float = 0.0
    """Share of results that are trouble of the infrastructure, and so no results."""
    seed: int = 0


def results(world: World, rows: slice | None = None) -> np.ndarray:
    """Passes (or `MISSING`): series x days x problems. `rows`: only these series; each has its own random numbers."""
    wanted = range(world.series)[rows or slice(None)]
    return np.stack([_one(world, np.random.default_rng((world.seed, row))) for row in wanted])


def _one(world: World, rng: np.random.Generator) -> np.ndarray:
    chance = rng.beta(*world.shape, size=world.problems)
    after = chance
    if world.drop:
        after = _forgotten(chance, world.drop, rng) if world.subset else _lowered(chance, world.drop)
    done = np.clip((np.arange(world.days) - world.at + 1) / world.over, 0, 1)[:, None, None]
    now = (1 - done) * chance[None, :, None] + done * after[None, :, None]
    passed = rng.random((world.days, world.problems, world.samples)) < now
    if world.stay:
        keep = rng.random(passed.shape) < world.stay
        keep[0] = False
        last = np.maximum.accumulate(np.where(keep, 0, np.arange(world.days)[:, None, None]), axis=0)
        passed = np.take_along_axis(passed, last, axis=0)
    counts: np.ndarray = passed.sum(2).astype(np.int8)
    if world.errors:
        counts[rng.random(counts.shape) < world.errors] = MISSING
    return counts


def _lowered(chance: np.ndarray, drop: float) -> np.ndarray:
    """The same problems for a model whose log odds are lower, such that the mean is lower by `drop`."""
    safe = np.clip(chance, 1e-9, 1 - 1e-9)
    odds = np.log(safe / (1 - safe))
    low, high = 0.0, 30.0
    for _ in range(40):
        shift = (low + high) / 2
        too_far = chance.mean() - (1 / (1 + np.exp(shift - odds))).mean() > drop
        low, high = (low, shift) if too_far else (shift, high)
    lower: np.ndarray = 1 / (1 + np.exp(shift - odds))
    return lower


def _forgotten(chance: np.ndarray, drop: float, rng: np.random.Generator) -> np.ndarray:
    after = chance.copy()
    for item in rng.permutation(np.flatnonzero(chance > 0.7)):
        if chance.mean() - after.mean() >= drop:
            break
        after[item] = 0
    return after
