"""Request and response bodies of the run API. Requests reject unknown fields; responses are built from rows here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from orchestrator.archives.tables import ArchiveRow
from orchestrator.http.schemas import Answer, Body, Number, Text, Words
from orchestrator.models.schemas import AnswerParams
from orchestrator.runs.labels.schemas import Labelled
from orchestrator.runs.lifecycle import TERMINAL, Status
from orchestrator.runs.queueing.drafts import Choice, PlannedBenchmark, run_params
from orchestrator.runs.queueing.judges import judge_slug
from orchestrator.runs.queueing.plan import guest_image
from orchestrator.runs.reasons import HELD, sentence
from orchestrator.runs.reports.model_cost import ModelCost
from orchestrator.runs.reports.scores import Flag, flags_of, scores_by_benchmark
from orchestrator.runs.service import NewRun
from orchestrator.runs.tables import Artefact, Attempt, ContainerRun, ItemRow
from orchestrator.runs.views.compare import ComparedRun
from orchestrator.stats.summary import Metric
from runner.contract.events import Outcome
from runner.contract.run_spec import RunKind

INT32 = 2**31 - 1
COST = "Of the model calls, in US dollars. None: calls were made while the model had no price, so that it is not known."
KNOWN_COST = "What the calls with a price cost; all of it where `unpriced_calls` is 0."
UNPRICED = "Calls that were made while the model had no price."


class RunShape(Body):
    """A run without its model and machine: which problems, how many samples, how fast."""

    sample_size: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = None
    subset_pct: Annotated[Number, Field(gt=0, le=100)] | None = None
    benchmarks: Annotated[list[Annotated[Text, Field(min_length=1, max_length=100)]], Field(max_length=20)] | None = None
    samples_per_problem: Annotated[StrictInt, Field(ge=1, le=200)] = 1
    seed: Annotated[StrictInt, Field(ge=0, le=INT32)] = 0
    provider: (
        Annotated[Text, Field(max_length=60, description="`local`, or that of agents; anywhere if not given.")] | None
    ) = None
    concurrency: Annotated[StrictInt, Field(ge=1, le=256)] = 8
    priority: Annotated[StrictInt, Field(ge=-1000, le=1000)] = 0
    budget_usd: Annotated[Number, Field(gt=0, le=1e9)] | None = None
    reuse_answers: Annotated[
        StrictBool | None,
        Field(description="Use answers that other runs bought to the same questions. Default: as the service is set."),
    ] = None
    batch: Annotated[
        StrictBool,
        Field(description="Send the calls through the provider's batches: cheaper, answered within a day."),
    ] = False
    deadline_s: Annotated[StrictInt, Field(ge=1, le=30 * 24 * 3600)] | None = None
    after: Annotated[date | None, Field(description="Only problems from this day on.")] = None
    before: Annotated[date | None, Field(description="Only problems up to this day.")] = None
    difficulty: Words | None = None
    platform: Words | None = None
    category: Words | None = None
    ids: (
        Annotated[list[Annotated[Text, Field(min_length=1, max_length=300)]], Field(min_length=1, max_length=100_000)] | None
    ) = None
    exclude_flagged: Annotated[StrictBool, Field(description="Without the problems that are known to be faulty.")] = False
    parity: Annotated[
        StrictBool, Field(description="Judge LiveCodeBench answers by its own checker's rules, too: a second execution.")
    ] = True

    params: Annotated[
        AnswerParams | None,
        Field(
            description="How the model is asked in this run; wins over the model's own; null takes the model's value away."
        ),
    ] = None

    @model_validator(mode="after")
    def _how_many(self) -> Self:
        if self.sample_size is not None and self.subset_pct is not None:
            raise ValueError("give either sample_size (a number of problems) or subset_pct (a percentage), not both")
        if self.sample_size is None and self.subset_pct is None and self.ids is None:
            raise ValueError("give either sample_size (a number of problems) or subset_pct (a percentage), or ids")
        if self.after is not None and self.before is not None and self.after > self.before:
            raise ValueError("after: the window ends before it begins")
        if self.benchmarks is not None and len(set(self.benchmarks)) != len(self.benchmarks):
            raise ValueError("benchmarks: each benchmark may be named once")
        return self

    def of_a_run(self, reuse_answers: bool) -> dict[str, Any]:
        """These fields as `NewRun` names them, without the benchmarks. `reuse_answers` is the default of the service."""
        values = {name: getattr(self, name) for name in RunShape.model_fields if name != "benchmarks"}
        filters = {name: tuple(values[name] or ()) for name in ("difficulty", "platform", "category")}
        ids = None if self.ids is None else tuple(self.ids)
        again = reuse_answers if self.reuse_answers is None else self.reuse_answers
        params = self.params.model_dump(exclude_unset=True) if self.params is not None else None
        return {**values, **filters, "ids": ids, "reuse_answers": again, "params": params or None}


class RunCreate(RunShape, Labelled):
    """A run: one model, a sample of one or more benchmarks, one container."""

    kind: Annotated[Literal["benchmark"], Field(description="`command` and `harness` have own bodies.")] = "benchmark"
    model_id: Annotated[StrictInt | Text, Field(description="Id or slug of a model.")]
    instance_type: Annotated[Text, Field(max_length=100)] | None = None

    def request(self, reuse_answers: bool) -> NewRun:
        """`reuse_answers` is the default of the service."""
        return NewRun(
            model=self.model_id,
            benchmarks=tuple(self.benchmarks or ()),
            instance_type=self.instance_type,
            labels=self.labels,
            **self.of_a_run(reuse_answers),
        )


class RunCreated(Answer):
    run_id: str
    status: str = "pending"


class GradeCreated(Answer):
    run_id: str
    status: str = "pending"
    benchmark: str
    pack_digest: str
    answers: int
    problems: int
    unattempted: int = Field(description="Problems of the benchmark without an answer.")
    unattempted_ids: list[str] = Field(description="At most 1,000 of them.")
    left_out: int = Field(description="Lines or records that could not be used.")
    left_out_lines: list[str] = Field(description="At most 1,000 of them, each with its place and the reason.")


class RegradeCreated(Answer):
    run_id: str
    status: str = "pending"
    answers: int
    left_out: int = Field(description="Items without a stored answer.")
    left_out_lines: list[str]


class MoveOut(Answer):
    benchmark: str
    problem_id: str
    sample_index: int
    before: Outcome
    after: Outcome
    parity_before: Outcome | None
    parity_after: Outcome | None
    score_before: float | None = Field(default=None, description="The value of the answer; null if it is pass or fail.")
    score_after: float | None = None


class Progress(Answer):
    done: int
    total: int


class Score(Answer):
    metric: Metric = Field(
        default=Metric.SHARE, description="`mean` if an item has a value between 0 and 1: the estimate is their mean."
    )
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    passed: int = 0
    n_all: int = 0
    excluded: int = Field(default=0, description="Items that ended with an error of provider or infrastructure.")
    estimate_all: float | None = None
    comparable: bool = True
    problems: int | None = None
    pass_at_k: dict[str, float] = {}
    parity: dict[str, Any] | None = Field(default=None, description="The score by the official checker's rules.")
    flips: int = Field(default=0, description="Items on which the two ways of judging differ.")
    pooled_over: int = Field(
        default=1, description="Over how many benchmarks the items are pooled; `scores` of the run has the score of each."
    )

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None, benchmarks: int = 1) -> Self | None:
        """From the score stored with a run of this many benchmarks."""
        if not stored:
            return None
        fields = {name: value for name, value in stored.items() if name in cls.model_fields}
        excluded = stored.get("n_all", stored["n"]) - stored["n"]
        return cls(**{"excluded": excluded, "pooled_over": benchmarks, **fields})


class RunComparison(Answer):
    """A run against another, its base, on the problems that both have."""

    run_id: str
    base: str
    verdict: str = Field(description="`better`, `worse`, `same`, `unclear`, or `nothing` (in common).")
    problems: int
    only_run: int = Field(description="Problems on which only this run passed, or has the higher value.")
    only_base: int
    difference: float = Field(description="This run minus its base.")
    low: float
    high: float
    p_value: float
    left_out: int = Field(description="Shared items with an error in either run that is not the model's fault.")

    @classmethod
    def of(cls, run_id: str, base: str, compared: ComparedRun) -> Self:
        pairs, difference = compared.pairs, compared.difference
        return cls(
            run_id=run_id,
            base=base,
            verdict=compared.verdict,
            problems=pairs.total,
            only_run=pairs.only_second,
            only_base=pairs.only_first,
            difference=difference.estimate,
            low=difference.low,
            high=difference.high,
            p_value=compared.p_value,
            left_out=compared.left_out,
        )


class ScoreDetail(Answer):
    """The score of each benchmark with its groups: difficulty, platform, category, month, and before/after the cut-off."""

    run_id: str
    benchmarks: dict[str, dict[str, Any]]


class UsageOut(Answer):
    """Cumulative usage of an attempt at one moment; `at_s` counts from its claim."""

    at_s: float
    cpu_s: float
    memory_bytes: int = Field(description="The most since the sample before, without what the kernel can give back.")
    throttled_s: float | None = Field(
        description="How long it was held back by its share of the cores, where that is known."
    )


class AttemptOut(Answer):
    number: int
    engine: str
    container_name: str
    container_id: str | None
    dispatched_at: datetime
    launched_at: datetime | None
    claimed_at: datetime | None
    last_event_at: datetime | None
    ended_at: datetime | None
    removed_at: datetime | None
    exit_code: int | None
    oom_killed: bool
    vcpu_s: float = Field(description="Processor time of the container, by the kernel.")
    gib_s: float = Field(description="Memory in use, summed over time.")
    throttled_s: float
    reason: str | None
    detail: str | None
    facts: dict[str, Any]
    usage: list[UsageOut] = Field(description="Over time, at most 240 samples.")

    @classmethod
    def of(cls, row: Attempt, samples: list[list[float | None]]) -> Self:
        usage = [UsageOut(**dict(zip(UsageOut.model_fields, sample, strict=True))) for sample in samples]
        stored = {name: getattr(row, name) for name in cls.model_fields if name not in ("engine", "usage")}
        return cls(**stored, engine=row.engine_label, usage=usage)


class RunOut(Answer):
    id: str
    kind: str
    name: str | None = None
    tags: list[str] = []
    note: str | None = None
    author: str | None = Field(default=None, description="Who created it; null if the service did, as for a schedule.")
    model_id: int | None = Field(description="Null for a run that asks no model.")
    model: str | None
    image: str | None = Field(default=None, description="Of a command or harness.")
    params: dict[str, Any] = Field(default={}, description="How this run asks its model, where it differs from the model.")
    benchmarks: list[str]
    sample_size: int
    subset_pct: float | None
    samples_per_problem: int
    seed: int
    instance_type: str
    provider: str | None
    concurrency: int
    priority: int
    budget_usd: float | None
    reuse_answers: bool
    batch: bool = Field(default=False, description="Whether its calls go through the provider's batches.")
    deadline_s: int
    trigger_type: str
    retry_of: str | None
    batch_id: str | None
    status: str
    stage: str | None
    desired: str
    attempt: int
    progress: Progress
    passed: int
    score: Score | None = Field(description="Over all items: pooled where the run has several benchmarks.")
    scores: dict[str, Score] = Field(default={}, description="The score of each benchmark.")
    flags: list[Flag] = Field(default=[], description="What must be said with the score of a completed run.")
    reason: str | None
    reason_sentence: str | None
    error_message: str | None
    waiting_for: str | None
    not_before: datetime | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    cost_usd: float | None = Field(description=COST)
    known_cost_usd: float = Field(default=0.0, description=KNOWN_COST)
    unpriced_calls: int = Field(default=0, description=UNPRICED)
    judge_cost_usd: float = Field(default=0.0, description="The part of the cost that models as judges have, if known.")
    input_tokens: int = Field(description="Of the measured model.")
    output_tokens: int = Field(description="Of the measured model.")

    @classmethod
    def of(cls, row: ContainerRun, model: str | None, waiting_for: str | None = None) -> Self:
        built = {"model", "image", "params", "progress", "passed", "score", "scores", "flags"}
        built |= {"reason_sentence", "waiting_for", "cost_usd", "known_cost_usd"}
        cost = ModelCost(row.cost_usd, row.unpriced_calls)
        parts = scores_by_benchmark(row.score, row.benchmarks)
        completed = row.status == Status.COMPLETED and row.kind in (RunKind.BENCHMARK, RunKind.GRADE, RunKind.HARNESS)
        return cls(
            **{name: getattr(row, name) for name in cls.model_fields if name not in built},
            model=model,
            image=guest_image(row),
            params=run_params(row.task),
            progress=Progress(done=row.items_done, total=row.items_total),
            passed=row.items_passed,
            score=Score.of(row.score, len(row.benchmarks)),
            scores={name: score for name, part in parts.items() if (score := Score.of(part)) is not None},
            flags=flags_of(row.score, row.items_done, row.items_total) if completed else [],
            reason_sentence=sentence(row.reason),
            waiting_for=HELD if row.inherited and row.status not in TERMINAL else waiting_for or row.waiting_for,
            cost_usd=cost.usd,
            known_cost_usd=cost.known_usd,
        )


class BenchmarkUsed(Answer):
    """The problems of a benchmark that a run uses."""

    name: str
    pack_digest: str
    count: int
    first_date: str | None = Field(default=None, description="Of the oldest problem used.")
    last_date: str | None = None
    selection: dict[str, Any] = Field(default={}, description="What was asked for.")
    flagged_excluded: int | None = Field(default=None, description="Problems of the pack left out as known to be faulty.")
    parity: bool = Field(default=True, description="Whether answers are judged by the official checker's rules, too.")
    problem_ids: list[str]
    judge_model_id: int | None = Field(default=None, description="The model that judges the answers, if one does.")
    judge: str | None = Field(default=None, description="Its slug when the run was queued.")

    @classmethod
    def of(cls, part: PlannedBenchmark) -> Self:
        choice = part.choice or Choice(count=len(part.problem_ids))
        same = {name: getattr(part, name) for name in ("name", "pack_digest", "problem_ids", "parity", "judge_model_id")}
        return cls(**same, judge=judge_slug(part), **choice.model_dump())


class RunDetail(RunOut):
    """A run with its attempts, outcomes and the exact problems it used."""

    attempts: list[AttemptOut]
    outcomes: dict[str, int]
    plan: list[BenchmarkUsed]
    artefacts: list[ArtefactOut]
    archive: ArchiveOut | None
    machine: MachineOut
    pinned: bool = Field(default=False, description="It cannot be deleted until it is unpinned.")


class MachineOut(Answer):
    """Machine usage of all attempts together, and its cost at the configured rates."""

    vcpu_s: float
    gib_s: float
    throttled_s: float
    cost_usd: float


class ArtefactOut(Answer):
    name: str
    size_bytes: int
    sha256: str
    created_at: datetime

    @classmethod
    def of(cls, row: Artefact) -> Self:
        return cls(name=row.name, size_bytes=row.size_bytes, sha256=row.sha256, created_at=row.created_at)


class ArchiveOut(Answer):
    state: str = Field(description="`waiting`, `built` (not yet where it belongs), `stored` or `expired`.")
    kind: str | None = Field(description="`result` or `error`.")
    place: str | None
    size_bytes: int | None
    sha256: str | None
    grading_digest: str | None = Field(description="Over all verdicts; grading the same answers again must reach it.")
    tries: int
    error: str | None
    stored_at: datetime | None

    @classmethod
    def of(cls, row: ArchiveRow | None) -> Self | None:
        return None if row is None else cls(**{name: getattr(row, name) for name in cls.model_fields})


class ItemOut(Answer):
    position: int
    benchmark: str
    problem_id: str
    sample_index: int
    attempt: int
    outcome: Outcome
    parity_outcome: Outcome | None
    score: float | None = Field(
        default=None, description="The value of the answer between 0 and 1; null if it is pass or fail."
    )
    detail: str
    cpu_s: float
    wall_s: float
    peak_bytes: int
    input_tokens: int
    output_tokens: int
    tests_total: int
    tests_passed: int
    fragile: bool
    created_at: datetime

    @classmethod
    def of(cls, row: ItemRow) -> Self:
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


class LogLine(Answer):
    at: datetime
    attempt: int | None
    level: str
    message: str


class LogsOut(Answer):
    lines: list[LogLine]
    container_log: str
    next: str | None = None


RunDetail.model_rebuild()
