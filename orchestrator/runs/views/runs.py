"""A run as a row of a list: title, progress, score, and one sentence that explains the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.runs.lifecycle import TERMINAL, Status
from orchestrator.runs.queueing.plan import guest_image
from orchestrator.runs.reasons import HELD, Reason, sentence
from orchestrator.runs.reports.scores import scores_by_benchmark
from orchestrator.runs.service import is_dead_letter
from orchestrator.runs.tables import ContainerRun
from orchestrator.stats.intervals import wilson
from orchestrator.stats.summary import Metric
from runner.contract.run_spec import EVAL_KINDS, RunKind

STAGE_TITLES = {
    "queued": "Queued",
    "starting": "Starting container",
    "boot": "Starting runner",
    "provision": "Loading problems",
    "running": "Running",
    "uploading": "Uploading",
    "finished": "Finished",
}
PROVISION_TITLES = {
    RunKind.COMMAND.value: "Preparing command",
    RunKind.HARNESS.value: "Preparing harness",
    RunKind.EVAL_GENERATE.value: "Loading traces",
    RunKind.EVAL_EXECUTE.value: "Loading traces",
}


@dataclass(frozen=True)
class ScoreView:
    """A score with its interval; `provisional` while the run is not over."""

    estimate: float
    low: float
    high: float
    n: int
    passed: int
    n_all: int
    estimate_all: float
    comparable: bool = True
    provisional: bool = False
    metric: str = Metric.SHARE.value
    pooled_over: int = 1
    """The number of benchmarks that the items are pooled over."""

    @property
    def left_out(self) -> int:
        """Items that do not count because their error is not the model's fault."""
        return self.n_all - self.n


@dataclass(frozen=True)
class RunLine:
    id: str
    kind: str
    model: str
    benchmarks: str
    status: str
    stage: str
    """In words; empty before the first attempt."""
    done: int
    total: int
    score: ScoreView | None
    scores: dict[str, ScoreView]
    """The score of each benchmark, if there are several."""
    note: str
    cost_usd: float
    unpriced_calls: int
    """Calls not included in the cost because their model had no price."""
    created_at: datetime
    live: bool

    at_budget: bool = False
    """It ended before its last item because its budget allowed no further call."""
    name: str = ""
    """What people call it; empty if it has no name."""
    tags: tuple[str, ...] = ()
    author: str = ""
    remark: str = ""
    """What people wrote about it."""
    trigger: str = ""
    instance_type: str = ""
    output_tokens: int = 0
    ended_at: datetime | None = None
    took_s: float | None = None
    dead: bool = False
    """It was given up, and nobody has resolved it."""

    @property
    def path(self) -> str:
        return f"/{'jobs' if self.kind in EVAL_KINDS else 'runs'}/{self.id}"

    @property
    def short_id(self) -> str:
        """The end of the id: ids created at about the same time begin alike."""
        return self.id[-6:]


def score_view(stored: Mapping[str, Any] | None, benchmarks: int = 1) -> ScoreView | None:
    """From the score stored with a run of this many benchmarks."""
    if not stored or stored.get("estimate") is None:
        return None
    return ScoreView(
        estimate=stored["estimate"],
        low=stored["low"],
        high=stored["high"],
        n=stored["n"],
        passed=stored.get("passed", 0),
        n_all=stored.get("n_all", stored["n"]),
        estimate_all=stored.get("estimate_all") or 0.0,
        comparable=stored.get("comparable", True),
        metric=stored.get("metric", Metric.SHARE.value),
        pooled_over=stored.get("pooled_over", benchmarks),
    )


def score_views(stored: Mapping[str, Any] | None, benchmarks: Sequence[str]) -> dict[str, ScoreView]:
    """The score of each benchmark, if there are several."""
    if len(benchmarks) < 2:
        return {}
    parts = scores_by_benchmark(stored, benchmarks)
    return {name: view for name, part in parts.items() if (view := score_view(part)) is not None}


def provisional_score(run: ContainerRun) -> ScoreView | None:
    """The score so far of a run that is not over, from its counters alone. Commands have none."""
    if run.status in TERMINAL or not run.items_done or run.kind == RunKind.COMMAND:
        return None
    interval = wilson(run.items_passed, run.items_done)
    items_done, passed = run.items_done, run.items_passed
    return ScoreView(
        interval.estimate,
        interval.low,
        interval.high,
        items_done,
        passed,
        items_done,
        interval.estimate,
        provisional=True,
        pooled_over=len(run.benchmarks) or 1,
    )


def explanation(run: ContainerRun, why: str | None = None, cancelled_by: str | None = None) -> str:
    """Why a run waits, or ended otherwise than planned, in one sentence; empty if there is nothing to explain.

    `why` comes from the queue (a whole sentence) or the gateway: a run waits for room, for its next attempt, or for its
    provider.
    `cancelled_by` is the name of who cancelled it, if known.
    """
    if run.status == Status.CANCELLED and cancelled_by:
        return f"Cancelled by {cancelled_by}."
    if run.status in TERMINAL:
        return run.error_message or sentence(run.reason) or ""
    if run.inherited:
        return f"Held: {HELD}."
    if run.desired == "cancel":
        return "Cancelling: waiting for the container to stop."
    if run.status == Status.PENDING and run.waiting_since is not None and run.waiting_for:
        return f"Waiting for {run.waiting_for}."
    if run.status == Status.PENDING:
        return f"{why}." if why else "Queued."
    waits = why or run.waiting_for
    return f"Waiting: {waits}" if waits else ""


EVAL_TITLES = {RunKind.EVAL_GENERATE.value: "eval written", RunKind.EVAL_EXECUTE.value: "eval executed"}


def stage_title(kind: str, stage: str) -> str:
    """A stage in words; a run of this kind may load something else than problems."""
    if stage == "provision" and kind in PROVISION_TITLES:
        return PROVISION_TITLES[kind]
    return STAGE_TITLES.get(stage, stage)


def title_of(run: ContainerRun, model: str | None) -> str:
    """The title of a run: its image or model, or what it does in the case of an eval job."""
    title = EVAL_TITLES.get(run.kind)
    if title is None:
        return (model if run.kind == RunKind.HARNESS else guest_image(run) or model) or ""
    return title if model is None else f"{title} by {model}"


def run_line(run: ContainerRun, model: str | None, why: str | None = None, *, cancelled_by: str | None = None) -> RunLine:
    return RunLine(
        id=run.id,
        kind=run.kind,
        model=title_of(run, model),
        benchmarks=", ".join(run.benchmarks),
        status=run.status,
        stage=stage_title(run.kind, run.stage or "").lower(),
        done=run.items_done,
        total=run.items_total,
        score=score_view(run.score, len(run.benchmarks)) or provisional_score(run),
        scores=score_views(run.score, run.benchmarks),
        note=explanation(run, why, cancelled_by),
        cost_usd=run.cost_usd,
        unpriced_calls=run.unpriced_calls,
        created_at=run.created_at,
        live=run.status not in TERMINAL,
        at_budget=run.status == Status.COMPLETED and run.reason == Reason.BUDGET_EXHAUSTED,
        name=run.name or "",
        tags=tuple(run.tags or ()),
        author=run.author or "",
        remark=run.note or "",
        trigger=run.trigger_type,
        instance_type=run.instance_type,
        output_tokens=run.output_tokens,
        ended_at=run.completed_at,
        took_s=(run.completed_at - run.started_at).total_seconds() if run.completed_at and run.started_at else None,
        dead=is_dead_letter(run),
    )
