"""Whether verdicts depend on the machine: the same answers, judged on several instance types. Pure.

Verdicts are compared only if the answers are identical to the byte. A difference is then our doing, and the problem is
fragile. If the answers differ, the model varied; this is counted separately and says nothing about the machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome


@dataclass(frozen=True, slots=True)
class MachineVerdict:
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
    """An answer whose verdict is not the same everywhere."""

    model: str
    benchmark: str
    problem_id: str
    sample_index: int
    answer_digest: str
    passes_differ: bool
    """Whether some verdicts are passes, so that the score is affected. Otherwise only the kind of failure differs."""
    between_types: bool
    """Whether instance types disagree. Otherwise only repeats on the same type do."""
    official_way: bool
    """Whether only the official checker's verdict differs."""
    verdicts: dict[str, dict[str, int]]
    """The count of each outcome, by instance type."""


@dataclass(frozen=True)
class Matrix:
    items: int = 0
    """Distinct items (model, benchmark, problem, sample)."""
    compared: int = 0
    """Items of which one answer was judged on more than one instance type."""
    repeated: int = 0
    """Items of which one answer was judged more than once, on any instance type."""
    varied: int = 0
    """Items with different answers, which is the model's doing."""
    varied_problems: list[str] = field(default_factory=list)
    left_out: int = 0
    """Results without a verdict, because the provider or our infrastructure failed."""
    fragile: list[Fragile] = field(default_factory=list)

    @property
    def flips(self) -> int:
        """Items that pass on one instance type and fail on another with the same answer."""
        return len(
            {
                _key(problem)
                for problem in self.fragile
                if problem.passes_differ and problem.between_types and not problem.official_way
            }
        )

    @property
    def fragile_problems(self) -> list[str]:
        return sorted({f"{problem.benchmark}/{problem.problem_id}" for problem in self.fragile})


class OnMachine(Protocol):
    id: str
    instance_type: str
    provider: str | None


def machine_names(runs: Sequence[OnMachine]) -> dict[str, str]:
    """The machine of each run: its instance type, with the provider if the runs have several."""
    several = len({run.provider for run in runs}) > 1
    return {
        run.id: f"{run.instance_type} on {run.provider or 'any machine'}" if several else run.instance_type for run in runs
    }


def compare(verdicts: Iterable[MachineVerdict]) -> Matrix:
    groups: dict[tuple[str, str, str, int], dict[str, list[MachineVerdict]]] = {}
    left_out = 0
    for verdict in verdicts:
        if verdict.outcome in NOT_THE_MODELS_FAULT:
            left_out += 1
        else:
            groups.setdefault(verdict.item, {}).setdefault(verdict.answer, []).append(verdict)
    fragile = []
    compared = repeated = varied = 0
    varied_problems = set()
    for (_, benchmark, problem_id, _), by_answer in groups.items():
        if len(by_answer) > 1:
            varied += 1
            varied_problems.add(f"{benchmark}/{problem_id}")
        compared += any(len({verdict.instance_type for verdict in same}) > 1 for same in by_answer.values())
        repeated += any(len(same) > 1 for same in by_answer.values())
        fragile += [problem for same in by_answer.values() if (problem := _fragile(same)) is not None]
    fragile.sort(key=lambda problem: (not problem.passes_differ, _key(problem)))
    return Matrix(len(groups), compared, repeated, varied, sorted(varied_problems), left_out, fragile)


def _key(problem: Fragile) -> tuple[str, str, str, int]:
    return problem.model, problem.benchmark, problem.problem_id, problem.sample_index


def _fragile(same: list[MachineVerdict]) -> Fragile | None:
    """What differs among the verdicts on one answer. Our own verdict comes before the official checker's."""
    strict = {verdict.outcome for verdict in same}
    official = len(strict) == 1
    if official and len({verdict.parity_outcome for verdict in same}) == 1:
        return None
    pairs = [(verdict.instance_type, str(verdict.parity_outcome if official else verdict.outcome)) for verdict in same]
    outcomes = {outcome for _, outcome in pairs}
    by_type: dict[str, Counter[str]] = {}
    for instance_type, outcome in pairs:
        by_type.setdefault(instance_type, Counter())[outcome] += 1
    first = same[0]
    return Fragile(
        *first.item,
        answer_digest=first.answer,
        passes_differ=len({outcome == Outcome.PASSED for outcome in outcomes}) > 1,
        between_types=len({frozenset(counter) for counter in by_type.values()}) > 1,
        official_way=official,
        verdicts={name: dict(sorted(counter.items())) for name, counter in sorted(by_type.items())},
    )
