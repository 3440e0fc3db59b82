"""Machine usage of a run in total and over time, its cost, and signs of too little capacity. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from runner.contract.events import UsageSample

GIB = float(1 << 30)
GONE = "runner.gone"
"""The action of a runner's last log line, see `runner/process/final_reading.py`."""
HOUR_S = 3600.0
LONGEST_GAP_S = 60.0
SLOW_WAIT_S = 60.0
HELD_SHARE = 0.2
REFUSED_SHARE = 0.1


@dataclass(frozen=True)
class Rates:
    """US dollars per vCPU-hour and per GiB-hour of memory in use."""

    vcpu_hour_usd: float = 0.0
    gib_hour_usd: float = 0.0

    def cost(self, vcpu_s: float, gib_s: float) -> float:
        return (vcpu_s * self.vcpu_hour_usd + gib_s * self.gib_hour_usd) / HOUR_S


@dataclass(frozen=True)
class MachineUsage:
    """Usage of one attempt so far, from the kernel's counters."""

    vcpu_s: float = 0.0
    gib_s: float = 0.0
    throttled_s: float = 0.0


def used_after(before: MachineUsage, stored: Sequence[Stored], fresh: Sequence[UsageSample]) -> MachineUsage:
    """Usage including the new samples. CPU time and throttling are counters. Memory is integrated over time, interpolated
    linearly between samples and starting from zero."""
    before_new = (stored[-1][0] or 0.0, stored[-1][2] or 0.0) if stored else (0.0, 0.0)
    new = [sample for sample in sorted(fresh, key=lambda each: each.at_s) if not stored or sample.at_s > before_new[0]]
    if not new:
        return before
    points = [before_new, *((sample.at_s, float(sample.memory_bytes)) for sample in new)]
    grown = sum((after - earlier) * (more + less) / 2 / GIB for (earlier, less), (after, more) in pairwise(points))
    last = new[-1]
    return MachineUsage(
        max(before.vcpu_s, last.cpu_s), before.gib_s + grown, max(before.throttled_s, last.throttled_s or 0.0)
    )


@dataclass(frozen=True)
class LastReading:
    """The last line of a container's log: the CPU time of its run and how long it lived."""

    vcpu_s: float
    lived_s: float


def last_reading(log_tail: str) -> LastReading | None:
    """None if the runner did not exit by itself."""
    last = log_tail.rstrip().rpartition("\n")[2]
    try:
        reading = json.loads(last)
        if reading["action"] != GONE:
            return None
        vcpu_s = float(reading["used"]) / float(reading["per_second"]) - float(reading["before_s"])
        return LastReading(max(0.0, vcpu_s), max(0.0, float(reading["at_s"]) - float(reading["began_s"])))
    except (ValueError, TypeError, KeyError, ZeroDivisionError):
        return None


def gib_s_after(stored: Sequence[Stored], lived_s: float) -> float:
    """Memory use from the last sample to the end, `lived_s` after the beginning, assuming that it stayed constant. A gap
    longer than any runner leaves means that clocks differ, and counts as zero."""
    if not stored:
        return 0.0
    gap_s = lived_s - (stored[-1][0] or 0.0)
    return gap_s * (stored[-1][2] or 0.0) / GIB if 0 < gap_s < LONGEST_GAP_S else 0.0


@dataclass(frozen=True)
class LastHour:
    """Statistics on the starts of all attempts that began within an hour."""

    starts: int = 0
    refused: int = 0
    mean_wait_s: float = 0.0
    longest_wait_s: float = 0.0
    running_s: float = 0.0
    throttled_s: float = 0.0

    @property
    def held_share(self) -> float:
        return self.throttled_s / self.running_s if self.running_s > 0 else 0.0


def signs(hour: LastHour, oldest_wait_s: float) -> list[str]:
    """Signs of too little capacity, as sentences; empty if there are none."""
    sentences = []
    if oldest_wait_s > SLOW_WAIT_S:
        sentences.append(f"Oldest queued run: waiting for {_time(oldest_wait_s)}. Add instances.")
    if hour.starts and hour.mean_wait_s > SLOW_WAIT_S:
        sentences.append(
            f"Runs of the last hour waited {_time(hour.mean_wait_s)} on average, {_time(hour.longest_wait_s)} at most. "
            "Raise max_instances, or add a machine with `benchyard agent`."
        )
    if hour.starts and hour.refused / hour.starts > REFUSED_SHARE:
        sentences.append(
            f"{hour.refused} of {hour.starts} starts in the last hour were refused or too slow. Check the engine."
        )
    if hour.held_share > HELD_SHARE:
        sentences.append(f"CPU was throttled for {hour.held_share:.0%} of the last hour. Use a larger instance type.")
    return sentences


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


MOST = 240
Stored = list[float | None]
"""[at_s, cpu_s, memory_bytes, throttled_s]: counters since the beginning; memory is the peak since the previous sample."""


@dataclass(frozen=True)
class UsagePoint:
    """Rates between one sample and the next."""

    at_s: float
    vcpu: float
    memory_bytes: float
    throttled: float | None
    """The share of the time in which it was throttled, relative to one core."""


def merged(stored: Sequence[Stored], fresh: Sequence[UsageSample], most: int = MOST) -> list[Stored]:
    """The samples with the new ones appended in order of time; samples that are already stored are skipped."""
    samples = [list(row) for row in stored]
    for sample in sorted(fresh, key=lambda reading: reading.at_s):
        if not samples or sample.at_s > _at(samples[-1]):
            samples.append([sample.at_s, sample.cpu_s, sample.memory_bytes, sample.throttled_s])
    while len(samples) > most:
        _join_closest(samples)
    return samples


def points(samples: Sequence[Stored]) -> list[UsagePoint]:
    """Rates between the samples; a counter that decreased counts as zero."""
    usage = []
    for before, after in pairwise(samples):
        took = _at(after) - _at(before)
        if took <= 0:
            continue
        throttled = None if after[3] is None or before[3] is None else max(0.0, after[3] - before[3]) / took
        usage.append(UsagePoint(_at(after), max(0.0, (after[1] or 0) - (before[1] or 0)) / took, after[2] or 0, throttled))
    return usage


def _join_closest(samples: list[Stored]) -> None:
    """Remove the sample whose neighbours are closest together; the next sample keeps the peak memory of both."""
    index = min(range(1, len(samples) - 1), key=lambda i: _at(samples[i + 1]) - _at(samples[i - 1]))
    gone = samples.pop(index)
    samples[index][2] = max(gone[2] or 0, samples[index][2] or 0)


def _at(sample: Stored) -> float:
    return sample[0] or 0.0
