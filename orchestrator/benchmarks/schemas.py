"""Request and response bodies for benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from orchestrator.benchmarks.building.pack import Preview
from orchestrator.benchmarks.building.sandboxed import MOST_ANSWERS
from orchestrator.benchmarks.definition import Definition
from orchestrator.benchmarks.published.catalogue import Entry
from orchestrator.benchmarks.trial import shown_judge_prompt, trials
from orchestrator.datasets.catalogue import BenchmarkInfo
from orchestrator.grading.agreement import MeasuredAgreement
from orchestrator.http.schemas import Answer, Body, Text
from runner.contract.rules.python_file import MAX_SOURCE_CHARS
from runner.rules.letter_answer import TEN

Handle = Annotated[Text, Field(max_length=100)]


class BenchmarkDescription(Body):
    """A benchmark described by a file: the parsed document, its text in YAML or JSON, or a Python file."""

    definition: dict[str, Any] | None = Field(default=None, description="The description as an object.")
    text: Annotated[Text, Field(max_length=1 << 20)] | None = Field(default=None, description="Or as YAML or JSON text.")
    python: Annotated[Text, Field(max_length=MAX_SOURCE_CHARS)] | None = Field(
        default=None, description="Or the source of a Python file with prompt(record) and score(record, answer)."
    )
    filename: Annotated[Text, Field(max_length=200)] = Field(
        default="benchmark.py", description="Of the Python file; its name is the benchmark's if NAME does not say."
    )
    name: Annotated[Text, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")] | None = Field(
        default=None, description="Another name than the one in the file, for example for a trial."
    )
    files: dict[Text, Handle] = Field(
        default_factory=dict,
        max_length=1000,
        description="For each file that the description names: the handle from POST /api/benchmarks/files.",
    )

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if sum(form is not None for form in (self.definition, self.text, self.python)) != 1:
            raise ValueError("give one of `definition`, `text` and `python`")
        return self


class AnswerToTry(Body):
    problem_id: Annotated[Text, Field(max_length=300)]
    text: Annotated[Text, Field(max_length=1 << 20)]


class BenchmarkTrial(BenchmarkDescription):
    """A Python file, and answers that its `score` is to judge."""

    answers: list[AnswerToTry] = Field(min_length=1, max_length=MOST_ANSWERS)


class TriedAnswerOut(Answer):
    problem_id: str
    value: float | None = Field(description="From 0 to 1; null if the file's program failed.")
    passed: bool | None
    reason: str
    answer: str | None
    error: str | None = Field(description="How the file's own program failed, if it did.")


class UploadedFile(Answer):
    file: str = Field(description="The handle of the file, for `files` of a description.")
    filename: str


class TrialOut(Answer):
    kind: str = Field(description="`right` or `wrong`: what the answer is meant to be; `unreadable`: no verdict.")
    answer: str = Field(description="The answer; if a model judges, what the judge would say.")
    taken: str | None = Field(description="The part of the answer that counts.")
    passed: bool


class ProblemPreview(Answer):
    id: str
    system: str
    prompt: str
    target: Any
    judge_prompt: str | None = Field(default=None, description="What the model that judges is asked, if one judges.")
    trials: list[TrialOut] = Field(description="How a right and a wrong answer would score; empty for programs.")

    @classmethod
    def of(cls, definition: Definition, problem: Mapping[str, Any]) -> Self:
        record = problem["record"]
        return cls(
            id=problem["entry"]["id"],
            system=record.get("system", ""),
            prompt=record["prompt"],
            target=record.get("target"),
            judge_prompt=shown_judge_prompt(definition.rules, record),
            trials=[
                TrialOut(**vars(trial))
                for trial in trials(definition.rules, record.get("target"), record.get("choices", TEN))
            ],
        )


class BenchmarkCheck(Answer):
    name: str
    digest: str = Field(description="Of everything that decides scores; it is part of the prompt version.")
    prompt_version: str
    problems: list[ProblemPreview]
    left_out: list[str]

    @classmethod
    def of(cls, definition: Definition, preview: Preview) -> Self:
        return cls(
            name=definition.name,
            digest=f"sha256:{definition.digest}",
            prompt_version=definition.rules.prompt_version,
            problems=[ProblemPreview.of(definition, problem) for problem in preview.problems],
            left_out=preview.left_out,
        )


class CatalogueChoice(Body):
    judge: Annotated[Text, Field(max_length=200)] | None = Field(
        default=None, description="The slug of the model that judges, for a benchmark that a model judges."
    )


class CatalogueEntry(Answer):
    """A published benchmark that can be added by its name."""

    name: str
    description: str
    licence: str
    source: str
    problems: int
    download_mb: float = Field(description="About.")
    gated: bool = Field(description="Whether the hub asks people to accept terms first; `HF_TOKEN` is needed then.")
    differs: str = Field(description="How scores are made differently from the authors' own.")
    described_by: Literal["file", "adapter"]
    needs_judge: bool = Field(description="Whether a model judges its answers; `judge` must be given then.")
    revision: str | None = Field(description="The pinned commit of its data on the hub.")
    added: bool = Field(description="Whether a benchmark of this name is here.")
    text: str | None = Field(default=None, description="The file that describes it, if it is asked for alone.")

    @classmethod
    def of(cls, entry: Entry, added: BenchmarkInfo | None, text: str | None = None) -> Self:
        definition = entry.definition
        return cls(
            name=entry.name,
            description=entry.description,
            licence=entry.licence,
            source=entry.source,
            **vars(entry.facts),
            described_by="adapter" if definition is None else "file",
            needs_judge=definition is not None and definition.judge.grader is not None,
            revision=None if definition is None else definition.records.revision,
            added=added is not None,
            text=text,
        )


class AgreementCreate(Body):
    model: Annotated[Text, Field(max_length=200)] | None = Field(
        default=None, description="Another model to judge with the benchmark's rubric, by its slug."
    )
    budget_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class AgreementCreated(Answer):
    run_id: str
    answers: int


class AgreementOut(Answer):
    """How far a judge agrees with people on the labelled answers of a benchmark."""

    run_id: str
    status: str
    judge: str | None = Field(description="The model that judged; null if a rule did.")
    pack_digest: str
    prompt_version: str
    created_at: datetime
    cost_usd: float = Field(description="As far as it is known.")
    answers: int
    judged: int
    unjudged: int = Field(description="Answers without a verdict: they count neither way.")
    share: float | None = Field(description="Of judged answers on which both agree.")
    low: float | None = Field(description="95 % interval of the share.")
    high: float | None
    kappa: float | None = Field(description="Cohen's kappa; null if both always say the same.")
    both_right: int
    both_wrong: int
    wrongly_passed: int = Field(description="The judge says right, people say wrong.")
    wrongly_failed: int

    @classmethod
    def of(cls, measured: MeasuredAgreement) -> Self:
        counts, share = measured.agreement, measured.agreement.share
        return cls(
            **{name: value for name, value in vars(measured).items() if name != "agreement"},
            **vars(counts),
            judged=counts.judged,
            share=share and share.estimate,
            low=share and share.low,
            high=share and share.high,
            kappa=counts.kappa,
        )


class BenchmarkOut(Answer):
    name: str
    adapter: str
    pack_digest: str
    problems: int
    difficulties: dict[str, int]
    first_date: date | None
    last_date: date | None
    description: str
    licence: str
    source: str
    default: bool
    prompt_version: str | None = Field(default=None, description="Of a benchmark that a file describes.")
    definition: dict[str, Any] | None = Field(default=None, description="The file that describes it, if one does.")
    judge: str | None = Field(default=None, description="The model that judges its answers, if one does.")
    labelled: int = Field(default=0, description="Answers that a person has judged, which measure the judge.")

    @classmethod
    def of(cls, info: BenchmarkInfo, default: str) -> Self:
        first, last = info.window or (None, None)
        own = {
            "first_date": first,
            "last_date": last,
            "default": info.name == default,
            "prompt_version": info.rules.prompt_version if info.rules else None,
            "judge": info.rules.judge.grader.model if info.rules and info.rules.judge.grader else None,
            "labelled": len(info.labelled),
        }
        return cls(**{name: getattr(info, name) for name in cls.model_fields if name not in own}, **own)
