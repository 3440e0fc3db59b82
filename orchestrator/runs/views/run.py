"""One run in full: stages with their times, score with both denominators, groups, costs, attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from orchestrator.dashboard.rendering.charts import Plot, Segment, outcome_bar, usage_plots
from orchestrator.dashboard.texts import size
from orchestrator.datasets.packs.pack import Entry
from orchestrator.engines.engine import InstanceType
from orchestrator.runs.lifecycle import TERMINAL, Status
from orchestrator.runs.reasons import sentence
from orchestrator.runs.reports.machine_cost import Stored
from orchestrator.runs.reports.queries import ItemVerdict
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.runs.views.runs import RunLine, ScoreView, run_line, stage_title
from orchestrator.stats.summary import ItemScore, Metric, Summary, summarise
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome, Stage
from runner.contract.run_spec import EVAL_KINDS, GUEST_KINDS, RunKind

Entries = Mapping[tuple[str, str], Entry]
"""Dataset index entries by (benchmark, problem)."""
EASE = ("easy", "medium", "hard")
_UNKNOWN = Entry("")
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


@dataclass(frozen=True)
class StageMark:
    """A step of the run: `past`, `now` or `ahead`; of a run that failed or was cancelled, `over` or `stopped`."""

    name: str
    title: str
    at: datetime | None
    took_s: float | None
    state: str


@dataclass(frozen=True)
class AttemptView:
    number: int
    engine: str
    instance_type: str
    container_name: str
    container_id: str | None
    dispatched_at: datetime
    claimed_at: datetime | None
    ended_at: datetime | None
    start_s: float | None
    """Time from the request for a container to the runner's first report."""
    lasted_s: float | None
    exit_code: int | None
    oom_killed: bool
    removed: bool
    vcpu_s: float
    gib_s: float
    why: str
    limits: str
    """The limits of the container, in words; empty if unknown."""
    plots: list[Plot]
    facts: list[tuple[str, str]]


@dataclass(frozen=True)
class RunPage:
    line: RunLine
    run: ContainerRun
    score: ScoreView | None
    summary: Summary | None
    by_benchmark: dict[str, Summary]
    """The score of each benchmark, if there are several."""
    outcomes: list[Segment]
    stages: list[StageMark]
    attempts: list[AttemptView]
    lasted_s: float | None
    retries_possible: bool
    fragile: int
    flipped: list[ItemVerdict]
    regrade_possible: bool


@dataclass(frozen=True)
class Containers:
    """Facts about a run's containers that are not in its attempts."""

    usage: Mapping[int, Sequence[Stored]]
    types: Mapping[str, InstanceType]


def run_page(
    run: ContainerRun,
    model: str | None,
    attempts: Sequence[Attempt],
    items: Sequence[ItemVerdict],
    entries: Entries,
    *,
    containers: Containers,
    now: datetime,
    why: str | None,
    cancelled_by: str | None = None,
) -> RunPage:
    line = run_line(run, model, why, cancelled_by=cancelled_by)
    summary = _by_ease(summarise([item_score(item, entries) for item in items])) if items else None
    unfinished = run.items_total - len(items) + sum(item.outcome in NOT_THE_MODELS_FAULT for item in items)
    if run.kind == RunKind.COMMAND and run.status == "failed":
        unfinished = run.items_total - run.items_passed
    if run.kind == RunKind.HARNESS and run.status != "completed":
        unfinished += 1  # how many items are missing is not known
    done_eval = run.kind in EVAL_KINDS and run.status == "completed"  # its results are not items
    begun, ended = run.started_at, run.completed_at or now
    return RunPage(
        line=line,
        run=run,
        score=_score_so_far(line.score, summary),
        summary=summary,
        by_benchmark=_by_benchmark(items) if len(run.benchmarks) > 1 else {},
        outcomes=outcome_bar(Counter(item.outcome for item in items)),
        stages=stage_marks(run, attempts[-1] if attempts else None),
        attempts=[attempt_view(attempt, containers, now) for attempt in attempts],
        lasted_s=(ended - begun).total_seconds() if begun else None,
        retries_possible=run.status in TERMINAL and unfinished > 0 and not done_eval,
        fragile=sum(item.fragile for item in items),
        flipped=[item for item in items if _flips(item)],
        regrade_possible=run.status in TERMINAL and bool(items) and run.kind not in GUEST_KINDS,
    )


def _score_so_far(score: ScoreView | None, summary: Summary | None) -> ScoreView | None:
    """A run's counters know passes only; the mean of values comes from the items."""
    if score is None or not score.provisional or summary is None or summary.metric is Metric.SHARE:
        return score
    return replace(score, metric=summary.metric.value, estimate=summary.estimate, low=summary.low, high=summary.high)


def _by_benchmark(items: Sequence[ItemVerdict]) -> dict[str, Summary]:
    names = dict.fromkeys(item.benchmark for item in items)
    return {name: summarise([item_score(item, {}) for item in items if item.benchmark == name]) for name in names}


def item_score(item: ItemVerdict, entries: Entries) -> ItemScore:
    entry = entries.get((item.benchmark, item.problem_id), _UNKNOWN)
    return ItemScore(
        problem_id=f"{item.benchmark}/{item.problem_id}",
        sample_index=item.sample_index,
        outcome=_OUTCOMES[item.outcome],
        difficulty=entry.difficulty,
        platform=entry.platform,
        category=entry.category,
        date=entry.date,
        parity_outcome=_OUTCOMES[item.parity_outcome] if item.parity_outcome else None,
        score=item.score,
    )


def stage_marks(run: ContainerRun, attempt: Attempt | None) -> list[StageMark]:
    """The steps from queue to end, for the newest attempt. Each lasts until the next step that has a time."""
    times: dict[str, datetime | None] = {"queued": run.created_at, "starting": None}
    if attempt is not None:
        times["starting"] = attempt.dispatched_at
        stages = attempt.facts.get("stages")
        timeline = stages if isinstance(stages, dict) else {}
        times |= {stage.value: _time(timeline.get(stage.value)) for stage in Stage}
        times["boot"] = times["boot"] or attempt.claimed_at
    else:
        times |= {stage.value: None for stage in Stage}
    if run.status in TERMINAL:
        times["finished"] = run.completed_at
    reached = [name for name, at in times.items() if at is not None]
    marks = []
    for name, at in times.items():
        later = [times[other] for other in reached[reached.index(name) + 1 :]] if name in reached else []
        following = later[0] if later else None
        took = max((following - at).total_seconds(), 0.0) if at and following else None
        state = "ahead" if at is None else "now" if name == reached[-1] and run.status not in TERMINAL else "past"
        if state == "past" and run.status in (Status.FAILED, Status.CANCELLED):
            state = "stopped" if name == reached[-1] and run.status == Status.FAILED else "over"
        marks.append(StageMark(name, stage_title(run.kind, name), at, took, state))
    return marks


def attempt_view(row: Attempt, containers: Containers, now: datetime) -> AttemptView:
    hidden = {"stages", "started_at", "finished_at", "engine", "instance_type", "items", "cpu_limit", "memory_limit_bytes"}
    vcpu, memory = _limits(row, containers.types)
    return AttemptView(
        number=row.number,
        engine=row.engine_label,
        instance_type=row.instance_type,
        container_name=row.container_name,
        container_id=row.container_id[:12] if row.container_id else None,
        dispatched_at=row.dispatched_at,
        claimed_at=row.claimed_at,
        ended_at=row.ended_at,
        vcpu_s=row.vcpu_s,
        gib_s=row.gib_s,
        start_s=_seconds(row.claimed_at, row.dispatched_at),
        lasted_s=_seconds(row.ended_at or now, row.claimed_at),
        exit_code=row.exit_code,
        oom_killed=row.oom_killed,
        removed=row.removed_at is not None,
        why=row.detail or sentence(row.reason) or "",
        limits=", ".join([*([f"{vcpu:g} vCPU"] if vcpu else []), *([f"{size(memory)} memory"] if memory else [])]),
        plots=usage_plots(containers.usage.get(row.number, []), vcpu, memory),
        facts=[(name, _shown(value)) for name, value in sorted(row.facts.items()) if name not in hidden],
    )


def _limits(row: Attempt, types: Mapping[str, InstanceType]) -> tuple[float | None, float | None]:
    """Cores and bytes: what the runner read from the kernel, or else the current limits of its instance type."""
    values = [row.facts.get(name) for name in ("cpu_limit", "memory_limit_bytes")]
    vcpu, memory = (float(value) if isinstance(value, int | float) and 0 < value < 1 << 60 else None for value in values)
    kind = types.get(row.instance_type) if row.engine != "process" else None
    if kind is not None:
        return vcpu or kind.vcpu, memory or float(kind.memory_bytes)
    return vcpu, memory


def _by_ease(summary: Summary) -> Summary:
    """Sorts difficulties from easy to hard, with other names after them."""
    ranks = {name: index for index, name in enumerate(EASE)}
    ordered = sorted(summary.by_difficulty.items(), key=lambda entry: (ranks.get(entry[0], len(ranks)), entry[0]))
    return replace(summary, by_difficulty=dict(ordered))


def _flips(item: ItemVerdict) -> bool:
    return item.parity_outcome is not None and (item.outcome == "passed") != (item.parity_outcome == "passed")


def _seconds(later: datetime | None, earlier: datetime | None) -> float | None:
    return max(later - earlier, timedelta(0)).total_seconds() if later and earlier else None


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _shown(value: Any) -> str:
    return str(value)[:300]
