"""Request and response bodies for eval sets, traces, evals and jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from orchestrator.evals.feedback import Opinion
from orchestrator.evals.jobs import Generation
from orchestrator.evals.service import SetChange, SetView, Wrong
from orchestrator.evals.tables import Eval
from orchestrator.http.schemas import Answer, Body, Number, Text
from orchestrator.runs.schemas import INT32
from orchestrator.stats.intervals import wilson
from orchestrator.traces.tables import Trace, TraceFeedback
from runner.contract.evals import EvalFailure, Label
from runner.contract.rules.evals import MAX_CHARS

Name = Annotated[Text, Field(min_length=1, max_length=200, pattern=r"\S")]
Description = Annotated[Text, Field(max_length=20_000)]
Project = Annotated[Text, Field(min_length=1, max_length=100)]
TraceIdText = Annotated[Text, Field(min_length=1, max_length=200)]
Priority = Annotated[StrictInt, Field(ge=-1000, le=1000)]
InstanceName = Annotated[Text, Field(max_length=100)]


BRIEF_CHARS = 20_000
SHORT_CHARS = 5_000


def shortened(value: Any) -> Any:
    """The value, or if it is long, the beginning of its text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= SHORT_CHARS else text[:SHORT_CHARS] + " ..."


class LabelFilter(StrEnum):
    """Which traces a list shows: those with this label, without a label, or with a label that an eval contradicts."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    NONE = "none"
    CONTRADICTED = "contradicted"  #: by the newest eval of the set


class EvalSetCreate(Body):
    """A question that people answer about traces. The model reads the description: state what makes a trace good."""

    name: Name
    description: Description = ""
    project: Annotated[Project | None, Field(description="Only traces of this project belong to the set.")] = None


class EvalSetChange(Body):
    name: Name | None = None
    description: Description | None = None
    project: Project | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("name at least one of name, description and project")
        return self

    def change(self) -> SetChange:
        forget = "project" in self.model_fields_set and self.project is None
        name = self.name.strip() if self.name is not None else None
        return SetChange(name, self.description, self.project, forget_project=forget)


class EvalSetOut(Answer):
    id: str
    name: str
    description: str
    project: str | None
    positive: int
    negative: int
    evals: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, view: SetView) -> Self:
        row = view.row
        return cls(
            id=row.id,
            name=row.name,
            description=row.description,
            project=row.project,
            positive=view.positive,
            negative=view.negative,
            evals=view.evals,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class FeedbackOut(Answer):
    rating: Label
    note: str
    updated_at: datetime


class TraceOut(Answer):
    id: str
    project: str
    input: Any
    output: Any
    steps: list[Any]
    metadata: dict[str, Any]
    created_at: datetime
    feedback: FeedbackOut | None = Field(default=None, description="In the eval set that was asked for.")
    cut: bool = Field(default=False, description="It is large: this is the beginning of it, without its steps.")

    @classmethod
    def brief(cls, row: Trace, feedback: TraceFeedback | None) -> Self:
        """The short form for lists: large values are cut."""
        whole = cls.of(row, feedback)
        if len(json.dumps(row.data)) <= BRIEF_CHARS:
            return whole
        texts = {"input": shortened(whole.input), "output": shortened(whole.output)}
        return whole.model_copy(update={**texts, "steps": [], "metadata": {}, "cut": True})

    @classmethod
    def of(cls, row: Trace, feedback: TraceFeedback | None) -> Self:
        data = {name: row.data.get(name) for name in ("input", "output")}
        stored = None
        if feedback is not None:
            stored = FeedbackOut(rating=Label(feedback.rating), note=feedback.note, updated_at=feedback.updated_at)
        return cls(
            id=row.id,
            project=row.project,
            steps=row.data.get("steps") or [],
            metadata=row.data.get("metadata") or {},
            created_at=row.created_at,
            feedback=stored,
            **data,
        )


class LeftOutLine(Answer):
    line: int
    reason: str


class TracesImported(Answer):
    imported: int
    unchanged: int = Field(description="Traces that were there already, with the same content.")
    labelled: int = Field(description="Labels that became feedback in the eval set.")
    left_out: int
    left_out_lines: list[LeftOutLine] = Field(description="At most 1,000 of them.")
    trace_ids: list[str] = Field(description="The first 100 of the new ones.")


class OneFeedback(Body):
    trace_id: TraceIdText
    rating: Label
    note: Annotated[Text, Field(max_length=10_000)] | None = None


class FeedbackCreate(Body):
    """One label, or a list of labels in `items`."""

    trace_id: TraceIdText | None = None
    rating: Label | None = None
    note: Annotated[Text, Field(max_length=10_000)] | None = None
    items: Annotated[list[OneFeedback], Field(min_length=1, max_length=1000)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        single = self.trace_id is not None and self.rating is not None
        mixed = self.items is not None and (self.trace_id or self.rating or self.note)
        if mixed or single == (self.items is not None):
            raise ValueError("give either trace_id and rating (positive or negative), or items, a list of such")
        return self

    def opinions(self) -> list[Opinion]:
        if self.items is not None:
            return [Opinion(item.trace_id, item.rating, item.note) for item in self.items]
        return [Opinion(self.trace_id or "", self.rating, self.note)]


class FeedbackStored(Answer):
    stored: int
    positive: int
    negative: int


class GenerateCreate(Body):
    """Have a model write an eval from the labelled traces of a set."""

    model_id: Annotated[StrictInt | Text, Field(description="Id or slug of a model.")]
    model: Annotated[
        StrictInt | Text | None, Field(description="Instead of `model_id`; the answer's `status` is then `queued`.")
    ] = None
    name: Annotated[Name | None, Field(description="Default: the set's name. The same name again makes a version.")] = None
    description: Description = ""
    seed: Annotated[StrictInt, Field(ge=0, le=INT32)] = 0
    target_accuracy: Annotated[
        Number, Field(ge=0.5, le=1, description="With this share of training traces right, nothing is repaired.")
    ] = 0.95
    priority: Priority = 0
    budget_usd: Annotated[Number, Field(gt=0, le=1e9)] | None = None
    instance_type: InstanceName | None = None

    @model_validator(mode="before")
    @classmethod
    def _model(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or fields.get("model") is None:
            return fields
        if fields.get("model_id") not in (None, fields["model"]):
            raise ValueError("model: it is another name for model_id; give only one of them")
        return {**fields, "model_id": fields["model"]}

    def generation(self) -> Generation:
        rest = self.model_dump(exclude={"model", "model_id", "name"})
        return Generation(self.model_id, self.name or "", **rest)


class JobCreated(Answer):
    job_id: str
    status: str = "pending"


class ExecuteCreate(Body):
    trace_ids: Annotated[
        list[TraceIdText] | None, Field(min_length=1, max_length=100_000, description="Default: all traces of the set.")
    ] = None
    force: Annotated[StrictBool, Field(description="Also those that have a verdict of this eval.")] = False
    priority: Priority = 0
    instance_type: InstanceName | None = None


class ExecuteCreated(JobCreated):
    estimated_count: int
    remaining: int = Field(description="Traces beyond what one job takes: execute again for them.")


class Accuracy(Answer):
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    right: int

    @classmethod
    def of(cls, right: int, n: int) -> Self:
        if not n:
            return cls(estimate=None, low=None, high=None, n=0, right=0)
        interval = wilson(right, n)
        return cls(estimate=interval.estimate, low=interval.low, high=interval.high, n=n, right=right)


class EvalOut(Answer):
    id: str
    eval_set_id: str
    name: str
    version: int
    description: str
    model: str | None = Field(description="None: a person wrote this version.")
    job_id: str
    accuracy: Accuracy = Field(description="On held-out traces, with Wilson's 95 % interval: the one that counts.")
    training_accuracy: Accuracy
    execution_count: int = Field(description="Traces with a verdict or a failure of this version.")
    passed_count: int
    failure_count: int
    contradiction_count: int
    disputed_count: int = Field(description="Contradictions of which somebody said that the eval is wrong.")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: Eval, model: str | None, disputed: int) -> Self:
        return cls(**eval_facts(row, model, disputed))


def eval_facts(row: Eval, model: str | None, disputed: int) -> dict[str, Any]:
    same = ("id", "eval_set_id", "name", "version", "description", "created_at", "updated_at")
    counts = ("execution_count", "passed_count", "failure_count", "contradiction_count")
    return {
        **{name: getattr(row, name) for name in (*same, *counts)},
        "model": model,
        "job_id": row.run_id,
        "disputed_count": disputed,
        "accuracy": Accuracy.of(row.held_out_right, row.held_out_n),
        "training_accuracy": Accuracy.of(row.training_right, row.training_n),
    }


class EvalVersion(Answer):
    id: str
    version: int
    created_at: datetime
    accuracy: Accuracy


class EvalTest(Answer):
    """The eval's verdict on a labelled trace, from when the eval was generated."""

    trace_id: str
    label: Label
    held_out: bool
    right: bool
    passed: bool | None = None
    score: float | None = None
    reason: str = ""
    failure: EvalFailure | None = None
    wall_ms: float = 0.0


class RoundOut(Answer):
    """One answer of the model during generation."""

    turn: int
    code: str | None = None
    problem: str = ""
    right: int | None = None
    tested: int | None = None


class EvalDetail(EvalOut):
    code: str
    versions: list[EvalVersion]
    tests: list[EvalTest]
    rounds: list[RoundOut]

    @classmethod
    def whole(cls, row: Eval, model: str | None, versions: Sequence[Eval], disputed: int) -> Self:
        return cls(
            **eval_facts(row, model, disputed),
            code=row.code,
            versions=[
                EvalVersion(
                    id=version.id,
                    version=version.version,
                    created_at=version.created_at,
                    accuracy=Accuracy.of(version.held_out_right, version.held_out_n),
                )
                for version in versions
            ],
            tests=[EvalTest(**test) for test in row.tests],
            rounds=[RoundOut(**entry) for entry in row.rounds],
        )


class EvalChange(Body):
    """A new name applies to all versions. The code of a version never changes: new code is tested and becomes a new one."""

    name: Name | None = None
    description: Description | None = None
    code: Annotated[
        str | None, Field(min_length=1, max_length=MAX_CHARS, description="Becomes a version when it has passed its tests.")
    ] = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.name is None and self.description is None and self.code is None:
            raise ValueError("name at least one of name, description and code")
        if self.name is not None and self.code is not None:
            raise ValueError("change the name and the code in two requests: all versions share one name")
        return self


class VerdictOut(Answer):
    """An eval's verdict on a trace, beside the label."""

    trace_id: str
    passed: bool | None
    score: float | None
    reason: str
    failure: EvalFailure | None
    wall_ms: float
    at: datetime
    rating: Label | None
    note: str | None
    contradiction: bool


class ContradictionOut(VerdictOut):
    input: Any
    output: Any
    disputed: bool = Field(description="Somebody looked at it and holds to the label: the eval is wrong.")


class DecisionCreate(Body):
    """A decision on whether the eval or the label of a trace is wrong."""

    trace_id: TraceIdText
    wrong: Wrong


class DecisionStored(Answer):
    trace_id: str
    rating: Label
    contradiction_count: int
    disputed_count: int
    positive: int
    negative: int
