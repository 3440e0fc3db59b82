"""A benchmark as a file: where its records are, which fields they have, the prompt, and how answers are found and judged.

The file is YAML or JSON; this module is its schema. Short forms (`judge: exact`, `prompt: ...`) are expanded when it is
read. It never reads records and never renders a template.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from orchestrator.datasets.errors import BadSource
from runner.contract.rules.grading import CODE, AnswerRule, By, Find, GradingRules, JudgeRule
from runner.contract.rules.model_judge import JUDGE_OPTIONS

MAX_INLINE = 10_000
Template = Annotated[str, Field(min_length=1, max_length=100_000)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]


HUB_NAME = r"^[A-Za-z0-9_.-]{1,100}(/[A-Za-z0-9_.-]{1,100})?$"
"""ASCII as on the hub. With every letter of Unicode (`\\w`), the compiled pattern would take 18 MB for good."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Config = Annotated[str, Field(min_length=1, max_length=200)]


class Records(_Part):
    """Where records come from: exactly one of files, a dataset of the hub, a dataset of this installation, or the list
    itself."""

    files: tuple[Annotated[str, Field(min_length=1, max_length=500)], ...] = Field(default=(), max_length=1000)
    hub: str | None = Field(default=None, pattern=HUB_NAME)
    config: Config | tuple[Config, ...] | None = Field(default=None, max_length=200)
    split: str | None = Field(default=None, max_length=200)
    revision: str | None = Field(default=None, max_length=200)
    pack: Name | None = None
    rows: tuple[dict[str, Any], ...] = Field(default=(), max_length=MAX_INLINE)

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"files": [value]}
        if isinstance(value, list):
            return {"files": value} if all(isinstance(entry, str) for entry in value) else {"rows": value}
        if isinstance(value, dict) and "file" in value:
            return {**{name: entry for name, entry in value.items() if name != "file"}, "files": [value["file"]]}
        return value

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if sum(map(bool, (self.files, self.hub, self.pack, self.rows))) != 1:
            raise ValueError("name exactly one of `files`, `hub`, `pack` and `rows`")
        if not self.hub and (self.config or self.split or self.revision):
            raise ValueError("`config`, `split` and `revision` belong to `hub`")
        return self

    @property
    def configs(self) -> tuple[str | None, ...]:
        """At least one: None is the data set's default."""
        return self.config if isinstance(self.config, tuple) else (self.config,)

    @property
    def origin(self) -> str:
        """For people."""
        if self.hub:
            config = f"{len(self.config)} configs" if isinstance(self.config, tuple) else self.config
            return " ".join(part for part in (self.hub, config, self.split, self.revision) if part)
        return ", ".join(self.files) or self.pack or "inline"


class TargetIs(StrEnum):
    """How a target names the right choice."""

    INDEX = "index"  #: its position, from 0
    LETTER = "letter"  #: A for the first
    LABEL = "label"  #: the label that the record gives it
    TEXT = "text"  #: the choice itself


class Fields(_Part):
    """The fields of a record: the name of a column, or a template over the columns."""

    id: str | None = None
    input: str = "input"
    target: str = "target"
    choices: str | tuple[str, ...] | None = None
    """A column with a list, or one column per choice."""
    shuffle: bool = False
    """Whether choices come in another order, which depends on the record's id alone."""
    target_is: TargetIs | None = None
    """How the target names the right choice; without it, whatever fits first."""
    difficulty: str | None = None
    date: str | None = None
    category: str | None = None
    title: str | None = None
    entry: str | None = None
    context: str | None = None


class Examples(_Part):
    """Worked examples that come before the question."""

    records: Records
    count: int = Field(default=5, ge=1, le=100)
    template: Template | None = None
    """How an example is written; without one, the prompt's template followed by the target."""
    same: str | None = None
    """A field that examples share with the question, such as `category`."""


class PromptTemplate(_Part):
    template: Template = "{{ input }}"
    system: str = Field(default="", max_length=100_000)
    examples: Examples | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"template": value} if isinstance(value, str) else value


_ANSWERS = {
    By.EXACT: Find.TEXT,
    By.ANY_OF: Find.TEXT,
    By.CONTAINS: Find.TEXT,
    By.REGEX: Find.TEXT,
    By.NUMBER: Find.NUMBER,
    By.CHOICE: Find.LETTER,
    By.JSON: Find.JSON,
    By.MATH: Find.BOXED,
    By.INSTRUCTIONS: Find.TEXT,
    By.INSTRUCTIONS_LOOSE: Find.TEXT,
    By.INSTRUCTIONS_SHARE: Find.TEXT,
    By.VALUE: Find.LAST_LINE,
    By.STDIN: Find.CODE,
    By.ASSERTIONS: Find.CODE,
    By.MODEL: Find.TEXT,
    By.PYTHON: Find.TEXT,
}
"""What is taken as the answer if the file does not say."""


class Definition(_Part):
    name: Name
    description: str = Field(default="", max_length=2000)
    licence: str = Field(default="", max_length=200)
    source: str = Field(default="", max_length=500)
    """Where the benchmark is published, for people."""
    records: Records
    fields: Fields = Fields()
    prompt: PromptTemplate = PromptTemplate()
    answer: AnswerRule
    judge: JudgeRule
    labelled: Records | None = None
    """Answers that a person has judged, with the columns `id`, `answer` and `right`."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        value = dict(value)
        if isinstance(value.get("judge"), str):
            value["judge"] = {"by": value["judge"]}
        elif isinstance(value.get("judge"), dict):
            value["judge"] = _with_grader(value["judge"])
        by = value["judge"].get("by") if isinstance(value.get("judge"), dict) else None
        answer = value.get("answer")
        if answer is None and by in set(By):
            value["answer"] = {"find": _ANSWERS[By(by)]}
        elif isinstance(answer, str):
            value["answer"] = {"find": answer}
        elif isinstance(answer, dict) and len(answer) == 1 and (short := next(iter(answer))) in ("regex", "json"):
            value["answer"] = {"find": short, {"regex": "pattern", "json": "path"}[short]: answer[short]}
        return value

    @field_validator("answer", "judge", mode="before")
    @classmethod
    def _no_unknown_names(cls, value: Any, info: Any) -> Any:
        """The rules are messages, which ignore unknown names; in a file such a name is a mistake."""
        allowed = (AnswerRule if info.field_name == "answer" else JudgeRule).model_fields
        if isinstance(value, dict) and (unknown := [str(name) for name in value if name not in allowed]):
            known = [*(name for name in allowed if name != "grader"), *(JUDGE_OPTIONS if "grader" in allowed else ())]
            raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return value

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.judge.by is By.PYTHON and type(self) is Definition:
            raise ValueError("`judge: python` is for Python files: add the file my.py itself")
        if self.judge.by in CODE and self.answer.find is not Find.CODE:
            raise ValueError(f"`judge: {self.judge.by}` runs a program, so `answer` must be `code`")
        if self.judge.by is By.CHOICE and self.fields.choices is None:
            raise ValueError("`judge: choice` needs the field `choices`")
        if self.fields.choices is None and (self.fields.shuffle or self.fields.target_is):
            raise ValueError("`shuffle` and `target_is` need the field `choices`")
        return self

    @property
    def rules(self) -> GradingRules:
        return GradingRules(answer=self.answer, judge=self.judge, prompt_version=f"{self.name}-{self.digest[:12]}")

    @property
    def digest(self) -> str:
        """Of what decides scores: everything but the texts for people and the place of the records.

        Defaults are left out, so that a new option does not change the digest of a file that does not use it.
        """
        scored = self.model_dump(mode="json", include={"fields", "prompt", "answer", "judge"}, exclude_defaults=True)
        return hashlib.sha256(json.dumps(scored, sort_keys=True).encode()).hexdigest()


def _with_grader(judge: dict[str, Any]) -> dict[str, Any]:
    """In a file, the options of a model as judge stand beside `by`."""
    options = {name: value for name, value in judge.items() if name in JUDGE_OPTIONS}
    if not options or "grader" in judge:
        return judge
    return {**{name: value for name, value in judge.items() if name not in options}, "grader": options}


def read_definition(document: dict[str, Any]) -> Definition:
    """Checks a document; raises `BadSource` with a line per mistake."""
    try:
        return Definition.model_validate(document)
    except ValidationError as error:
        raise BadSource(f"The description of the benchmark has mistakes: {mistakes(error)}.") from None


def mistakes(error: ValidationError) -> str:
    lines = []
    for mistake in error.errors()[:10]:
        place = ".".join(str(part) for part in mistake["loc"] if part != "grader") or "the file"
        lines.append(f"{place}: {mistake['msg'].removeprefix('Value error, ')}")
    return "; ".join(lines)
