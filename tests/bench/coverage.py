"""`python -m tests.bench.coverage [SIMULATIONS]`: how often do 95 % intervals hold the truth?"""

from __future__ import annotations

import sys

import numpy as np

from orchestrator.schedules.drift.evidence import Tally, interval
from orchestrator.stats.clustered import clustered_interval
from orchestrator.stats.intervals import Interval, wilson, wilson_difference
from orchestrator.stats.paired import Pairs, mean_difference, paired_difference

SIMULATIONS = 10_000


def share(found: list[tuple[Interval, float]]) -> float:
    return sum(each.low <= truth <= each.high for each, truth in found) / len(found)


def wilson_covers(trials: int, simulations: int, rng: np.random.Generator) -> float:
    """The chance is drawn evenly between 0 and 1 for each simulation: the mean coverage over p."""
    chances = rng.random(simulations)
    return share([(wilson(int(hits), trials), p) for hits, p in zip(rng.binomial(trials, chances), chances, strict=True)])


def difference_covers(trials: int, simulations: int, rng: np.random.Generator) -> float:
    found = []
    for p, q in rng.random((simulations, 2)):
        one, other = int(rng.binomial(trials, p)), int(rng.binomial(trials, q))
        found.append((wilson_difference((one, trials), (other, trials)), p - q))
    return share(found)


def clustered_covers(problems: int, samples: int, simulations: int, rng: np.random.Generator) -> float:
    """Problems of very unequal difficulty; the truth is the mean over all problems there could be."""
    found = []
    for a, b in rng.uniform(0.4, 2.0, (simulations, 2)):
        passed = rng.binomial(samples, rng.beta(a, b, problems))
        rows = [[1.0] * int(each) + [0.0] * (samples - int(each)) for each in passed]
        found.append((clustered_interval(rows), a / (a + b)))
    return share(found)


def paired_covers(problems: int, simulations: int, rng: np.random.Generator) -> float:
    """Two models on the same problems, each problem with a difficulty of its own for both."""
    found = []
    for shift in rng.uniform(0, 1.5, simulations):
        hard = rng.normal(0, 1.5, problems)
        one, other = (rng.random(problems) < 1 / (1 + np.exp(hard + each)) for each in (0.0, shift))
        pairs = Pairs.of(list(zip(one.tolist(), other.tolist(), strict=True)))
        many = rng.normal(0, 1.5, 20_000)
        truth = float((1 / (1 + np.exp(many))).mean() - (1 / (1 + np.exp(many + shift))).mean())
        found.append((paired_difference(pairs), truth))
    return share(found)


def change_covers(problems: int, earlier: int, later: int, simulations: int, rng: np.random.Generator) -> float:
    """The effect of a look; the truth is the mean change of the panel's own problems."""
    found = []
    for _ in range(simulations):
        before = rng.beta(0.6, 0.4, problems)
        now = np.clip(before - 0.05, 0, 1)
        counts = zip(rng.binomial(earlier, before), rng.binomial(later, now), strict=True)
        tallies = [Tally(earlier, int(a), later, int(b)) for a, b in counts]
        found.append((interval(tallies), float((now - before).mean())))
    return share(found)


SHAPES = ("even", "both ends", "mostly right", "steps", "narrow", "rarely wrong")


def values(shape: str, number: int, rng: np.random.Generator) -> np.ndarray:
    """Values between 0 and 1 of problems, as metrics have them."""
    one = rng.random(number)
    match shape:
        case "even":
            return rng.beta(2, 1, number)
        case "both ends":
            return rng.beta(0.3, 0.2, number)
        case "mostly right":
            return np.where(one < 0.85, 1.0, rng.random(number))
        case "steps":
            return rng.choice([0, 0.25, 0.5, 0.75, 1], number, p=[0.1, 0.1, 0.1, 0.2, 0.5])
        case "narrow":
            return rng.normal(0.8, 0.03, number).clip(0, 1)
        case _:
            return np.where(one < 0.95, 1.0, rng.random(number) / 2)


def mean_covers(shape: str, problems: int, samples: int, simulations: int, rng: np.random.Generator) -> float:
    """The truth is the mean over all problems there could be; samples of a problem vary around its own value."""
    truth = float(values(shape, 1_000_000, rng).mean())
    covered = []
    for _ in range(simulations):
        own = values(shape, problems, rng)
        rows = own[:, None] + rng.uniform(-1, 1, (problems, samples)) * np.minimum(own, 1 - own)[:, None] / 2
        covered.append((clustered_interval(rows.tolist()), truth))
    return share(covered)


def mean_difference_covers(problems: int, simulations: int, rng: np.random.Generator) -> float:
    """Two models with values that depend on the problem; the second is a little worse."""
    covered = []
    for shift in rng.uniform(0, 0.2, simulations):
        first = rng.beta(3, 1, problems)
        second = first * (1 - shift * rng.choice([0.0, 1.0, 2.0], problems))
        covered.append((mean_difference((second - first).tolist()), -0.75 * shift))
    return share(covered)


def _vary(means: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Sums over runs of values that vary around their means without leaving 0..1."""
    noise: np.ndarray = rng.uniform(-1, 1, (runs, len(means))) * np.minimum(means, 1 - means)
    return (means + noise).sum(0)


def value_change_covers(problems: int, earlier: int, later: int, simulations: int, rng: np.random.Generator) -> float:
    """Like `change_covers`, of values between 0 and 1."""
    covered = []
    for _ in range(simulations):
        before = rng.beta(3, 1, problems)
        now = np.clip(before - 0.03, 0, 1)
        sums = [_vary(mean, runs, rng) for mean, runs in ((before, earlier), (now, later))]
        truth = float((now - before).mean())
        tallies = [Tally(earlier, float(a), later, float(b)) for a, b in zip(*sums, strict=True)]
        covered.append((interval(tallies), truth))
    return share(covered)


def main(simulations: int) -> None:
    rng = np.random.default_rng(1)
    fewer = max(1, simulations // 5)
    for trials in (10, 20, 50, 100, 400):
        print(f"Wilson, {trials} trials: {wilson_covers(trials, simulations, rng):.1%}", flush=True)
    print(f"difference of two shares, 50 trials each: {difference_covers(50, simulations, rng):.1%}", flush=True)
    for problems, samples in ((60, 8), (200, 4), (100, 1)):
        covered = clustered_covers(problems, samples, fewer, rng)
        print(f"clustered, {problems} problems with {samples} samples: {covered:.1%}", flush=True)
    for problems in (50, 200):
        print(f"paired difference, {problems} problems: {paired_covers(problems, fewer, rng):.1%}", flush=True)
    for earlier, later in ((1, 1), (30, 1), (30, 10)):
        covered = change_covers(200, earlier, later, fewer, rng)
        print(f"change of a series, {earlier} runs before, {later} now: {covered:.1%}", flush=True)
    for shape in SHAPES:
        for problems in (10, 20, 50, 200):
            covered = mean_covers(shape, problems, 1, fewer, rng)
            print(f"mean of values ({shape}), {problems} problems: {covered:.1%}", flush=True)
    for problems in (20, 100):
        print(
            f"difference of mean values, {problems} problems: {mean_difference_covers(problems, fewer, rng):.1%}", flush=True
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SIMULATIONS)
