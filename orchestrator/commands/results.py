"""Results of commands: repeats from rows, figures over repeats and runs, comparisons in numbers and words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlmodel import Session

from orchestrator.errors import Invalid, NotFound
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.bounds import stored_item
from orchestrator.runs.queueing.plan import command_of
from orchestrator.runs.tables import ContainerRun, ItemRow
from orchestrator.stats.intervals import LEVEL
from orchestrator.stats.measurements import FigureComparison, FigureVerdict, Summary, compare, summary
from runner.contract.commands import LARGEST_FIGURE, Better, CommandTask, Figure, RepeatFacts
from runner.contract.events import Outcome

PAGE = 200
WORDS = {
    "wall_s": ("faster", "slower"),
    "cpu_s": ("less processor time", "more processor time"),
    "user_s": ("less processor time", "more processor time"),
    "system_s": ("less processor time", "more processor time"),
    "peak_bytes": ("less memory", "more memory"),
}


@dataclass(frozen=True)
class Repeat:
    """One repeat, passed or failed."""

    run_id: str
    number: int
    attempt: int
    outcome: str
    detail: str
    exit: str
    wall_s: float
    cpu_s: float
    user_s: float
    system_s: float
    peak_bytes: int
    throttled_s: float | None
    output_bytes: int
    figures: list[Figure]
    self_reported: bool = False
    """Reported by a task runner; values that it left out are zero."""

    @property
    def counts(self) -> bool:
        return self.outcome == Outcome.PASSED

    def measured(self) -> list[Figure]:
        """The kernel's figures, then the command's own. A command cannot use the name of a kernel figure."""
        seconds = [Figure(name=name, value=getattr(self, name), unit="s") for name in WORDS if name != "peak_bytes"]
        measured = [*seconds, Figure(name="peak_bytes", value=self.peak_bytes, unit="B")]
        if self.self_reported:
            measured = [figure for figure in measured if figure.name == "wall_s" or figure.value > 0]
        return measured + [
            figure for figure in self.figures if figure.name not in WORDS and abs(figure.value) <= LARGEST_FIGURE
        ]


@dataclass(frozen=True)
class CommandRun:
    """A run with its repeats."""

    run_id: str
    task: CommandTask
    image_id: str | None
    instance_type: str
    status: str
    repeats: list[Repeat]
    provider: str | None = None

    @property
    def self_reported(self) -> bool:
        """Whether any figures come from a task runner rather than our own kernel readings."""
        return any(repeat.self_reported for repeat in self.repeats)


@dataclass
class Group:
    """Runs that are evaluated together."""

    label: str
    runs: list[CommandRun] = field(default_factory=list)


@dataclass(frozen=True)
class FigureOver:
    """One figure over the repeats of a group. `values` has one sequence per run."""

    name: str
    unit: str
    better: Better
    values: list[list[float]]
    summary: Summary


@dataclass(frozen=True)
class ComparedFigure:
    figure: str
    group: str
    against: str
    comparison: FigureComparison
    sentence: str


def load(session: Session, run_id: str) -> CommandRun:
    run = run_queries.get(session, run_id)
    if run is None:
        raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists the existing ones")
    return command_run(session, run)


def command_run(session: Session, run: ContainerRun) -> CommandRun:
    task = command_of(run)
    if task is None:
        raise Invalid(f"run {run.id} is of kind {run.kind}; only runs of kind command have repeats to compare")
    repeats: list[Repeat] = []
    after = -1
    while rows := item_queries.whole_page(session, run.id, limit=PAGE, after=after):
        repeats += [_repeat(row) for row in rows]
        after = rows[-1].position
    facts = [attempt.facts for attempt in run_queries.attempts(session, run.id)]
    image_id = next((str(fact["image_id"]) for fact in reversed(facts) if fact.get("image_id")), None)
    return CommandRun(run.id, task, image_id, run.instance_type, run.status, repeats, run.provider)


def _repeat(row: ItemRow) -> Repeat:
    item = stored_item(row.data, row.outcome)
    facts = item.repeat or RepeatFacts()
    return Repeat(
        run_id=row.run_id,
        number=row.sample_index + 1,
        attempt=row.attempt,
        outcome=row.outcome,
        detail=row.detail,
        exit=item.exit,
        wall_s=row.wall_s,
        cpu_s=row.cpu_s,
        user_s=facts.user_s,
        system_s=facts.system_s,
        peak_bytes=row.peak_bytes,
        throttled_s=facts.throttled_s,
        output_bytes=facts.output_bytes,
        figures=facts.figures,
        self_reported=facts.self_reported,
    )


def figures_of(runs: Iterable[CommandRun], level: float = LEVEL) -> list[FigureOver]:
    """Every figure of the repeats that count, in order of appearance."""
    first: dict[str, Figure] = {}
    values: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        for repeat in run.repeats:
            for figure in repeat.measured() if repeat.counts else ():
                first.setdefault(figure.name, figure)
                values.setdefault(figure.name, {}).setdefault(run.run_id, []).append(figure.value)
    figures = []
    for name, figure in first.items():
        by_run = list(values[name].values())
        if (over := summary(by_run, level)) is not None:
            figures.append(FigureOver(name, figure.unit, figure.better, by_run, over))
    return figures


def compare_groups(pairs: Sequence[tuple[Group, Group]], level: float = LEVEL) -> list[ComparedFigure]:
    """Compare each pair: a group, and the group that it is measured against."""
    figures: dict[str, dict[str, FigureOver]] = {}
    for group in (group for pair in pairs for group in pair):
        if group.label not in figures:
            figures[group.label] = {figure.name: figure for figure in figures_of(group.runs, level)}
    comparisons = []
    for group, against in pairs:
        for name, figure in figures[group.label].items():
            if (base := figures[against.label].get(name)) is None:
                continue
            larger = base.better is Better.LARGER
            result = compare(figure.values, base.values, larger_is_better=larger, level=level)
            comparisons.append(ComparedFigure(name, group.label, against.label, result, sentence(name, result)))
    return comparisons


def sentence(name: str, comparison: FigureComparison) -> str:
    """For example `1.23 times as much (1.19 to 1.27): slower`."""
    better, worse = WORDS.get(name, ("better", "worse"))
    word = {
        FigureVerdict.BETTER: better,
        FigureVerdict.WORSE: worse,
        FigureVerdict.NO_DIFFERENCE: "no difference seen",
        FigureVerdict.TOO_FEW: "too few repeats to tell",
    }[comparison.verdict]
    if comparison.ratio is not None:
        return f"{word}: {comparison.ratio.estimate:.3g} times ({comparison.ratio.low:.3g} to {comparison.ratio.high:.3g})"
    if comparison.difference is not None:
        gap = comparison.difference
        return f"{word}: {gap.estimate:+.3g} ({gap.low:+.3g} to {gap.high:+.3g})"
    return word


def groups_by_run(runs: Sequence[CommandRun]) -> list[Group]:
    """One group per run."""
    return [Group(f"{run.task.image} on {run.instance_type}, run {run.run_id[-6:]}", [run]) for run in runs]


def groups_by_cell(runs: Sequence[CommandRun]) -> list[Group]:
    """One group per command, image, instance type and provider."""
    cells: dict[tuple[str, str, str, str | None], Group] = {}
    many, several = len({run.task.name for run in runs}) > 1, len({run.provider for run in runs}) > 1
    for run in runs:
        label = f"{run.task.image} on {run.instance_type}" + (f" of {run.provider or 'any machine'}" if several else "")
        key = run.task.name, run.task.image, run.instance_type, run.provider
        cells.setdefault(key, Group(f"{run.task.name}: {label}" if many else label)).runs.append(run)
    return list(cells.values())


def pairs_by_run(groups: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Every run against the first."""
    return [(group, groups[0]) for group in groups[1:]]


def _machine(group: Group) -> tuple[str, str | None]:
    return group.runs[0].instance_type, group.runs[0].provider


def pairs_by_cell(groups: Sequence[Group]) -> list[tuple[Group, Group]]:
    """For each command: per machine, every image against the first; per image, every machine against the first."""
    pairs = []
    for group in groups:
        first = group.runs[0]
        same = [other for other in groups if other.runs[0].task.name == first.task.name]
        first_image = next(other for other in same if _machine(other) == _machine(group))
        first_type = next(other for other in same if other.runs[0].task.image == first.task.image)
        pairs += [(group, other) for other in (first_image, first_type) if other is not group]
    return pairs
