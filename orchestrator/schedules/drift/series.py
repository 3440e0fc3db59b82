"""Judges the series of a schedule: is the newest run worse, better, or unchanged? Pure.

Every look spends a part of the false-alarm rate, and the parts add up to the rate however many looks there are. So a person
who looks every day for years gets a false alarm with at most the stated probability. Each look compares the last 1, 3, 7 and
10 runs with the baseline before them, which detects both a sudden break and a small lasting drop; its p-value is corrected
for these four windows and the two directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.schedules.drift.evidence import Record, Tally, chances, interval
from orchestrator.stats.intervals import Interval

WINDOWS = (1, 3, 7, 10)
HEAD_START = 100
"""About the first hundred looks spend similar parts; later ones spend less and less."""
MAX_FLIPPED = 50
MIN_SHARED = 0.5
"""Share of the panel's problems that must have results on both sides."""

Key = tuple[str, str]
"""Benchmark and problem."""
Results = Mapping[Key, tuple[int, float]]
"""(results, sum of their values) of each problem in one run, without errors that are not the model's fault."""


class DriftVerdict(StrEnum):
    NO_CHANGE = "no_change"  #: no evidence of a change
    WORSE = "worse"  #: the series has enough evidence of a drop
    BETTER = "better"  #: the series has enough evidence of a rise
    NOT_COMPARABLE = "not_comparable"  #: the run did not complete, had too many errors, or has no earlier run


class BaselineKind(StrEnum):
    ROLLING = "rolling"  #: a pool of the previous runs
    LAST_GOOD = "last_good"  #: the newest earlier run that was not judged worse
    RUN = "run"  #: a chosen run


@dataclass(frozen=True)
class Look:
    """One comparable run of the series."""

    run_id: str
    verdict: DriftVerdict | None
    results: Results


@dataclass(frozen=True)
class Baseline:
    kind: BaselineKind = BaselineKind.ROLLING
    runs: int = 30
    chosen: Results | None = None

    def before(self, window: int, series: Sequence[Look]) -> list[Results]:
        """The runs to compare the newest `window` runs with. `series` is newest first."""
        older = series[window:]
        if self.kind is BaselineKind.RUN:
            return [self.chosen] if self.chosen is not None else []
        if self.kind is BaselineKind.LAST_GOOD:
            return [look.results for look in older if look.verdict is not DriftVerdict.WORSE][:1]
        return [look.results for look in older[: self.runs]]


@dataclass(frozen=True)
class Flip:
    """A problem that the model solved before and now does not, or the other way round; shares of its results."""

    benchmark: str
    problem_id: str
    before: float
    now: float


@dataclass(frozen=True)
class DriftComparison:
    verdict: DriftVerdict
    sentence: str
    effect: Interval | None = None
    """Later minus earlier, in shares of passed results or as a difference of mean values."""
    window: int = 0
    """Number of newest runs that the effect covers."""
    reference_runs: int = 0
    problems: int = 0
    """Problems with results on both sides; the verdict is about these."""
    of_problems: int = 0
    """Problems with a result in the newest run."""
    p_value: float | None = None
    """Exact paired test of the newest run alone; valid for a single look, not for a series of looks."""
    evidence: float | None = None
    """One over the p-value of this look, corrected for windows and directions."""
    needed: float | None = None
    """The evidence at which this look raises an alarm."""
    flipped: tuple[Flip, ...] = ()


def threshold(look: int, alarm_rate: float) -> float:
    """The evidence that look number `look` needs: one over its part of the rate. All parts add up to the rate."""
    at = look + HEAD_START
    return at * (at + 1) / ((HEAD_START + 1) * alarm_rate)


def not_comparable(sentence: str) -> DriftComparison:
    return DriftComparison(DriftVerdict.NOT_COMPARABLE, sentence)


def compare(series: Sequence[Look], baseline: Baseline, *, look: int, alarm_rate: float) -> DriftComparison:
    """Judge the newest run. `series` is newest first; `look` is its number, counted from 1."""
    windows = {window: records(series, window, baseline) for window in WINDOWS if window <= len(series)}
    windows = {window: shared for window, shared in windows.items() if shared}
    if 1 not in windows:
        return not_comparable("First run on these problems: later runs are compared with it.")
    if len(windows[1]) < MIN_SHARED * len(series[0].results):
        return not_comparable("Too few problems have results in this run and in the baseline.")
    p_values = {window: chances(list(shared.values())) for window, shared in windows.items()}
    least = {verdict: min(p_values, key=lambda window: p_values[window][side]) for side, verdict in enumerate(_DIRECTIONS)}
    direction = min(_DIRECTIONS, key=lambda verdict: p_values[least[verdict]][_DIRECTIONS.index(verdict)])
    evidence = 1 / min(1.0, 2 * len(p_values) * p_values[least[direction]][_DIRECTIONS.index(direction)])
    needed = threshold(look, alarm_rate)
    verdict, window = (direction, least[direction]) if evidence >= needed else (DriftVerdict.NO_CHANGE, 1)
    tallies = {key: record.tally for key, record in windows[window].items()}
    effect = interval(list(tallies.values()))
    return DriftComparison(
        verdict=verdict,
        sentence=_sentence(verdict, effect, window, len(tallies), len(series[0].results)),
        effect=effect,
        window=window,
        reference_runs=len(baseline.before(window, series)),
        problems=len(tallies),
        of_problems=len(series[0].results),
        p_value=min(1.0, 2 * min(p_values[1])),
        evidence=evidence,
        needed=needed,
        flipped=flips(tallies),
    )


_DIRECTIONS = (DriftVerdict.WORSE, DriftVerdict.BETTER)
"""In the order of `chances`: few passes, many passes."""


def records(series: Sequence[Look], window: int, baseline: Baseline) -> dict[Key, Record]:
    """The problems of the newest run that have results on both sides."""
    later = [look.results for look in series[:window]]
    earlier = baseline.before(window, series)
    shared = {}
    for key in series[0].results:
        before, now = (tuple(run[key] for run in side if key in run and run[key][0]) for side in (earlier, later))
        if before and now:
            shared[key] = Record(before, now)
    return shared


def flips(tallies: Mapping[Key, Tally]) -> tuple[Flip, ...]:
    """Problems whose share of passes crossed one half, the largest change first."""
    crossed = [
        Flip(*key, tally.earlier_passed / tally.earlier, tally.later_passed / tally.later)
        for key, tally in tallies.items()
        if (2 * tally.earlier_passed > tally.earlier) != (2 * tally.later_passed > tally.later)
    ]
    return tuple(
        sorted(crossed, key=lambda flip: (-abs(flip.now - flip.before), flip.benchmark, flip.problem_id))[:MAX_FLIPPED]
    )


def _sentence(verdict: DriftVerdict, effect: Interval, window: int, shared: int, of: int) -> str:
    problems = f"{shared} problems" if shared == of else f"{shared} of {of} problems"
    points = f"{_signed(effect.estimate)} points ({_signed(effect.low)} to {_signed(effect.high)})"
    runs = "the newest run" if window == 1 else f"the newest {window} runs"
    if verdict is DriftVerdict.NO_CHANGE:
        return f"No change seen: {points} on {problems}."
    return f"{verdict.value.capitalize()} than the baseline: {points} in {runs}, on {problems}."


def _signed(share: float) -> str:
    """In points; what rounds to nothing has a plus."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"
