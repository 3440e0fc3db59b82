"""Request and response bodies of schedules and their fires."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from orchestrator.harnesses.schemas import HarnessBody, shown_harness
from orchestrator.http.schemas import Answer, Body, Number, Text
from orchestrator.runs.schemas import INT32
from orchestrator.schedules.drift.power import DetectionPower, detectable_drop, sentence
from orchestrator.schedules.drift.series import BaselineKind, DriftVerdict
from orchestrator.schedules.firing.decisions import FireOutcome, Misfire, Overlap
from orchestrator.schedules.panel import Draw
from orchestrator.schedules.tables import Schedule, ScheduleFire, SchedulePanel

UNKNOWN_ITEMS = (
    "Not known before the first run: the harness decides how many items there are. "
    "Runs are compared by the ids of their items."
)
Size = Annotated[StrictInt, Field(ge=1, le=1_000_000)]


class ScheduleSave(Body):
    """A model's schedule to create or change. Omitted fields keep their value or get their default."""

    model_id: Annotated[StrictInt | Text, Field(description="Id or slug of a model.")]
    cron_expression: Annotated[Text, Field(min_length=1, max_length=200)]
    sample_size: Annotated[
        Size | None,
        Field(description="Problems of each benchmark, drawn once; a new schedule needs it or a harness."),
    ] = None
    harness: Annotated[HarnessBody | None, Field(description="Takes the place of benchmarks and sample_size.")] = None
    benchmarks: Annotated[list[Annotated[Text, Field(min_length=1, max_length=100)]], Field(max_length=20)] | None = None
    timezone: Annotated[Text, Field(min_length=1, max_length=60)] = "UTC"
    instance_type: Annotated[Text, Field(max_length=100)] | None = None
    samples_per_problem: Annotated[StrictInt, Field(ge=1, le=200)] = 1
    concurrency: Annotated[StrictInt, Field(ge=1, le=256)] = 8
    priority: Annotated[StrictInt, Field(ge=-1000, le=1000)] = 0
    budget_usd: Annotated[Number, Field(gt=0, le=1e9)] | None = None
    batch: Annotated[StrictBool, Field(description="Send the calls through the provider's batches.")] = False
    seed: Annotated[StrictInt, Field(ge=0, le=INT32)] = 0
    draw: Annotated[Draw, Field(description="`informative`: first the problems that this model solves sometimes.")] = (
        Draw.ALL
    )
    redraw: Annotated[StrictBool, Field(description="Draw a new panel even if nothing else changes.")] = False
    misfire_policy: Misfire = Misfire.NEWEST
    misfire_grace_s: Annotated[StrictInt, Field(ge=60, le=7 * 24 * 3600)] = 3600
    overlap: Overlap = Overlap.FORBID
    paused: StrictBool = False
    baseline: BaselineKind = BaselineKind.ROLLING
    baseline_run_id: Annotated[Text, Field(max_length=36)] | None = None
    baseline_runs: Annotated[StrictInt, Field(ge=1, le=365)] = 30
    alarm_rate: Annotated[Number, Field(gt=0, le=0.5, description="Maximum rate of false alarms over the whole series.")] = (
        0.05
    )
    is_paused: Annotated[StrictBool | None, Field(description="The same as `paused`.")] = None

    @model_validator(mode="before")
    @classmethod
    def _paused(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and fields.get("is_paused") is not None:
            return {"paused": fields["is_paused"], **fields}
        return fields

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.benchmarks is not None and len(set(self.benchmarks)) != len(self.benchmarks):
            raise ValueError("benchmarks: each benchmark may be named once")
        if self.baseline is BaselineKind.RUN and not self.baseline_run_id:
            raise ValueError("baseline_run_id: the baseline 'run' needs the id of a run")
        return self

    def values(self) -> dict[str, Any]:
        """The given fields under the names of their columns."""
        values = self.model_dump(exclude_unset=True, exclude={"model_id", "redraw", "is_paused", "harness"}, mode="json")
        if self.harness is not None:
            values["harness"] = self.harness.task()
        if "misfire_policy" in values:
            values["misfire"] = values.pop("misfire_policy")
        if "benchmarks" in values:
            values["benchmarks"] = values["benchmarks"] or []
        return values


class PauseChange(Body):
    paused: StrictBool = True
    is_paused: Annotated[StrictBool | None, Field(description="The same as `paused`.")] = None

    @property
    def paused_value(self) -> bool:
        return self.paused if self.is_paused is None else self.is_paused


class ScheduleChange(Body):
    """What to change; without a field, a running schedule is paused and a paused one resumes."""

    is_paused: StrictBool | None = None
    paused: Annotated[StrictBool | None, Field(description="The same as `is_paused`.")] = None

    @property
    def paused_value(self) -> bool | None:
        return self.paused if self.is_paused is None else self.is_paused


class SightOut(Answer):
    """What the schedule can detect."""

    drop: float | None = Field(description="None before the first run of a harness: how many items it has is not known.")
    problems: int
    baseline_runs: int
    within_runs: int
    power: float
    alarm_rate: float
    from_history: bool
    sentence: str

    @classmethod
    def of(cls, power: DetectionPower) -> Self:
        return cls(
            drop=detectable_drop(power),
            problems=power.problems,
            baseline_runs=power.pool,
            within_runs=power.within,
            power=power.power,
            alarm_rate=power.alarm_rate,
            from_history=not power.assumed,
            sentence=sentence(power),
        )

    @classmethod
    def unknown(cls, schedule: Schedule) -> Self:
        """Of a harness before its first run."""
        usual = DetectionPower(0)
        return cls(
            drop=None,
            problems=0,
            baseline_runs=schedule.baseline_runs,
            within_runs=usual.within,
            power=usual.power,
            alarm_rate=schedule.alarm_rate,
            from_history=False,
            sentence=UNKNOWN_ITEMS,
        )


class PanelOut(Answer):
    version: int
    problems: int
    seed: int
    draw: Draw
    how: str
    created_at: datetime

    @classmethod
    def of(cls, row: SchedulePanel) -> Self:
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


class PanelDetail(PanelOut):
    """A panel with its problems."""

    benchmarks: list[dict[str, Any]]


class ComparisonOut(Answer):
    verdict: DriftVerdict
    sentence: str
    effect: float | None
    low: float | None
    high: float | None
    window: int
    reference_runs: int
    problems: int
    p_value: float | None
    evidence: float | None
    needed: float | None
    flipped: list[dict[str, Any]]


class FireOut(Answer):
    instant: datetime
    outcome: FireOutcome
    cause: str
    run_id: str | None
    panel_version: int
    late_s: float
    detail: str
    recorded_at: datetime
    verdict: DriftVerdict | None
    look: int | None
    judged_at: datetime | None
    comparison: ComparisonOut | None

    @classmethod
    def of(cls, row: ScheduleFire) -> Self:
        values = {name: getattr(row, name) for name in cls.model_fields if name != "comparison"}
        return cls(**values, comparison=ComparisonOut(**row.comparison) if row.comparison else None)


class ScheduleOut(Answer):
    model_id: int
    model: str
    cron_expression: str
    words: str
    timezone: str
    harness: Annotated[dict[str, Any] | None, Field(description="With digests in place of files.")]
    sample_size: Annotated[int, Field(description="0 for a harness, which chooses its items itself.")]
    benchmarks: list[str]
    samples_per_problem: int
    instance_type: str | None
    concurrency: int
    priority: int
    budget_usd: float | None
    batch: bool = Field(default=False, description="Whether the calls go through the provider's batches.")
    seed: int
    draw: Draw
    panel_version: int
    misfire_policy: Misfire
    misfire_grace_s: int
    overlap: Overlap
    paused: bool
    next_fire_at: datetime | None
    baseline: BaselineKind
    baseline_run_id: str | None
    baseline_runs: int
    alarm_rate: float
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: Schedule, model_slug: str, words: str) -> Self:
        derived = {"model", "words", "misfire_policy", "harness"}
        values = {name: getattr(row, name) for name in cls.model_fields if name not in derived}
        harness = None if row.harness is None else shown_harness(row.harness)
        return cls(**values, model=model_slug, words=words, misfire_policy=Misfire(row.misfire), harness=harness)


class ScheduleDetail(ScheduleOut):
    """A schedule with its next fires, its panel, its newest fire and what it can detect."""

    next_fires: list[datetime]
    panel: PanelOut | None
    last_fire: FireOut | None
    can_see: SightOut


class ScheduleChanged(ScheduleDetail):
    is_paused: bool = Field(description="The same as `paused`.")


class SizeFor(Answer):
    drop: float
    problems: int


class Preview(Answer):
    cron: str
    tz: str
    words: str
    next_fires: list[datetime]
    local_times: list[str]
    can_see: SightOut
    size_for: SizeFor | None
