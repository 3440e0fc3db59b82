"""Whether a verdict depends on the machine: the same answers, judged on several instance types. Pure.

Two verdicts are compared only where the answers are the same to the byte. Then a difference is ours: the problem is
fragile. Where answers differ, the model varied; that is counted apart and says nothing about the machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome


@dataclass(frozen=True, slots=True)
class Judged:
    """One verdict on one machine."""

    model: str
    benchmark: str
    problem_id: str
    sample_index: int
    instance_type: str
    answer: str
    outcome: str
    parity_outcome: str | None = None

    @property
    def item(self) -> tuple[str, str, str, int]:
        return self.model, self.benchmark, self.problem_id, self.sample_index


@dataclass(frozen=True)
class Fragile:
    """The same answer, and not the same verdict everywhere."""

    model: str
    benchmark: str
    problem_id: str
    sample_index: int
    answer_digest: str
    passes_differ: bool
    """It passed here and not there: the score depends on it. Otherwise only the kind of failure differs."""
    between_types: bool
    """The instance types disagree; otherwise the repeats on one of them do."""
    official_way: bool
    """Only the official checker's verdict differs."""
    verdicts: dict[str, dict[str, int]]
    """How often each outcome came, by instance type."""


@dataclass(frozen=True)
class Matrix:
    items: int = 0
    """Different items (model, benchmark, problem, sample)."""
    compared: int = 0
    """Of these, those whose same answer was judged on more than one instance type."""
    repeated: int = 0
    """Those whose same answer was judged more than once, wherever."""
    varied: int = 0
    """Those that got different answers: the model's doing."""
    varied_problems: list[str] = field(default_factory=list)
    left_out: int = 0
    """Results that are no verdict: the provider or we failed."""
    fragile: list[Fragile] = field(default_factory=list)

    @property
    def flips(self) -> int:
        """Items that pass on one instance type and fail on another, with the same answer."""
        return len(
            {_key(each) for each in self.fragile if each.passes_differ and each.between_types and not each.official_way}
        )

    @property
    def fragile_problems(self) -> list[str]:
        return sorted({f"{each.benchmark}/{each.problem_id}" for each in self.fragile})


class OnMachine(Protocol):
    id: str
    instance_type: str
    provider: str | None


def machine_names(runs: Sequence[OnMachine]) -> dict[str, str]:
    """The machine of each run: its instance type, with the provider where the runs have several."""
    several = len({run.provider for run in runs}) > 1
    return {
        run.id: f"{run.instance_type} on {run.provider or 'any machine'}" if several else run.instance_type for run in runs
    }


def compare(verdicts: Iterable[Judged]) -> Matrix:
    groups: dict[tuple[str, str, str, int], dict[str, list[Judged]]] = {}
    left_out = 0
    for each in verdicts:
        if each.outcome in NOT_THE_MODELS_FAULT:
            left_out += 1
        else:
            groups.setdefault(each.item, {}).setdefault(each.answer, []).append(each)
    fragile = []
    compared = repeated = varied = 0
    varied_problems = set()
    for (_, benchmark, problem_id, _), by_answer in groups.items():
        if len(by_answer) > 1:
            varied += 1
            varied_problems.add(f"{benchmark}/{problem_id}")
        compared += any(len({each.instance_type for each in same}) > 1 for same in by_answer.values())
        repeated += any(len(same) > 1 for same in by_answer.values())
        fragile += [found for same in by_answer.values() if (found := _fragile(same)) is not None]
    fragile.sort(key=lambda each: (not each.passes_differ, _key(each)))
    return Matrix(len(groups), compared, repeated, varied, sorted(varied_problems), left_out, fragile)


def _key(each: Fragile) -> tuple[str, str, str, int]:
    return each.model, each.benchmark, each.problem_id, each.sample_index


def _fragile(same: list[Judged]) -> Fragile | None:
    """What differs among verdicts on one answer, the strict way first."""
    strict = {each.outcome for each in same}
    official = len(strict) == 1
    if official and len({each.parity_outcome for each in same}) == 1:
        return None
    shown = [(each.instance_type, str(each.parity_outcome if official else each.outcome)) for each in same]
    outcomes = {outcome for _, outcome in shown}
    by_type: dict[str, Counter[str]] = {}
    for instance_type, outcome in shown:
        by_type.setdefault(instance_type, Counter())[outcome] += 1
    one = same[0]
    return Fragile(
        *one.item,
        answer_digest=one.answer,
        passes_differ=len({outcome == Outcome.PASSED for outcome in outcomes}) > 1,
        between_types=len({frozenset(counter) for counter in by_type.values()}) > 1,
        official_way=official,
        verdicts={name: dict(sorted(counter.items())) for name, counter in sorted(by_type.items())},
    )
