"""Request bodies of harness runs, and a harness as responses show it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StrictInt, field_validator, model_validator

from orchestrator.batches.schemas import BatchShape
from orchestrator.batches.service import NewHarnessBatch
from orchestrator.commands.schemas import (
    CommandPlace,
    Environment,
    FileBody,
    FileOut,
    Image,
    Program,
    argv_of,
    check_command,
    check_env,
    checked_files,
)
from orchestrator.harnesses.service import CONCURRENCY, NewHarness
from orchestrator.http.schemas import Body, Number, Text
from orchestrator.runs.labels.schemas import Labelled
from runner.contract.commands import MAX_FILES, file_name_problem
from runner.contract.harness import HarnessTask, ResultsFormat, ResultsRule

OWN_VARIABLES = ("OPENAI_", "ANTHROPIC_", "BENCHYARD_", "INSPECT_EVAL_MODEL")
"""The beginnings of the variables that say where the model is."""
USUAL_PATHS = {
    ResultsFormat.JSON_LINES: ["results.jsonl"],
    ResultsFormat.INSPECT: ["logs/*.eval", "logs/*.json"],
    ResultsFormat.LM_EVAL: ["**/samples_*.jsonl", "**/results_*.json"],
    ResultsFormat.JUNIT: ["*.xml"],
    ResultsFormat.NEMO_EVALUATOR: ["**/results.yml", "**/results.yaml", "**/results.json"],
}
USUAL_EXITS = {ResultsFormat.JUNIT: [0, 1]}
"""A test tool ends with 1 if a test failed, which is a result."""


class ResultsBody(Body):
    """Where a harness writes its results, and in which format."""

    format: ResultsFormat = ResultsFormat.JSON_LINES
    paths: Annotated[list[Text], Field(min_length=1, max_length=20)] | None = Field(
        default=None, description="Patterns, relative to the working directory. Default: the usual ones of the format."
    )

    @field_validator("paths")
    @classmethod
    def _relative(cls, paths: list[str] | None) -> list[str] | None:
        for path in paths or ():
            if (problem := file_name_problem(path)) is not None:
                raise ValueError(f"{path[:100]!r} {problem}")
            if path.split("/").count("**") > 2:
                raise ValueError(f"{path[:100]!r} has more than two **")
        return paths

    def rule(self) -> ResultsRule:
        return ResultsRule(format=self.format, paths=self.paths or USUAL_PATHS[self.format])


class HarnessBody(Body):
    """A harness in an allowed image, run once."""

    image: Image
    command: Program
    name: (
        Annotated[Text, Field(min_length=1, max_length=100, description="Of the benchmark. Default: the program's.")] | None
    ) = None
    env: Environment = Field(default_factory=dict, max_length=100, description="No secrets: it is stored and shown.")
    files: list[FileBody] = Field(
        default_factory=list, max_length=MAX_FILES, description="Put into its working directory; 256 KiB in all."
    )
    results: ResultsBody = ResultsBody()
    exit_codes: Annotated[list[Annotated[StrictInt, Field(ge=0, le=255)]], Field(min_length=1, max_length=20)] | None = (
        Field(default=None, description="Of a harness that did its work. Default: 0; for junit 0 and 1.")
    )

    @model_validator(mode="after")
    def _usable(self) -> Self:
        checked_files(self.files)
        check_command(self.command)
        check_env(self.env)
        for name in self.env:
            if name.upper().startswith(OWN_VARIABLES):
                raise ValueError(f"env: {name} says where the model is, and is set by the service")
        return self

    def task(self) -> HarnessTask:
        label = self.name or (self.command.split()[0] if isinstance(self.command, str) else self.command[0])
        rule = self.results.rule()
        return HarnessTask(
            name=label.rstrip("/").rsplit("/", 1)[-1].strip()[:100] or "harness",
            image=self.image,
            argv=argv_of(self.command),
            env=self.env,
            files=checked_files(self.files),
            results=rule,
            exit_codes=self.exit_codes or USUAL_EXITS.get(rule.format, [0]),
        )


class HarnessRunCreate(CommandPlace, Labelled):
    """A run of kind `harness`."""

    kind: Literal["harness"]
    harness: HarnessBody
    model_id: Annotated[StrictInt | Text, Field(description="Id or slug of a model.")]
    instance_type: Annotated[Text, Field(max_length=100)] | None = None
    budget_usd: Annotated[Number, Field(gt=0, le=1e9)] | None = None
    concurrency: Annotated[StrictInt, Field(ge=1, le=256, description="Model calls at once.")] = CONCURRENCY
    reuse_answers: Annotated[
        StrictBool | None,
        Field(description="Use answers that other runs bought to the same questions. Default: as the service is set."),
    ] = None

    def request(self, reuse_answers: bool) -> NewHarness:
        """`reuse_answers` is the default of the service."""
        return NewHarness(
            task=self.harness.task(),
            model=self.model_id,
            instance_type=self.instance_type,
            provider=self.provider,
            priority=self.priority,
            deadline_s=self.deadline_s,
            budget_usd=self.budget_usd,
            concurrency=self.concurrency,
            reuse_answers=reuse_answers if self.reuse_answers is None else self.reuse_answers,
            labels=self.labels,
        )


class HarnessBatchCreate(BatchShape, CommandPlace):
    """One run for each of models x harnesses x instance types x repeats. They share `budget_usd` equally."""

    models: Annotated[list[StrictInt | Text], Field(min_length=1, max_length=1000, description="Ids or slugs of models.")]
    harnesses: Annotated[list[HarnessBody], Field(min_length=1, max_length=100)]
    budget_usd: Annotated[Number, Field(gt=0, le=1e9)] | None = None
    concurrency: Annotated[StrictInt, Field(ge=1, le=256, description="Model calls at once, for each run.")] = CONCURRENCY
    reuse_answers: StrictBool | None = None

    @model_validator(mode="after")
    def _once_each(self) -> Self:
        self.machines(self.provider)
        names = [body.task().name for body in self.harnesses]
        if len(set(names)) != len(names):
            raise ValueError("harnesses: two of them have the same name; give them names of their own")
        if len(set(self.models)) != len(self.models):
            raise ValueError("models: each model may be named once; runs_per_instance_type asks for repeats")
        return self

    def shown(self) -> dict[str, Any]:
        """The request as shown to people, with digests in place of files."""
        document = self.model_dump(mode="json", exclude_none=True)
        for part, body in zip(document["harnesses"], self.harnesses, strict=True):
            part["files"] = [FileOut.of(file.file()).model_dump(mode="json") for file in body.files]
        return document

    def request(self, reuse_answers: bool) -> NewHarnessBatch:
        """`reuse_answers` is the default of the service."""
        reuse = reuse_answers if self.reuse_answers is None else self.reuse_answers
        return NewHarnessBatch(
            models=tuple(self.models),
            harnesses=tuple(
                NewHarness(
                    task=body.task(),
                    model="",
                    priority=self.priority,
                    deadline_s=self.deadline_s,
                    concurrency=self.concurrency,
                    reuse_answers=reuse,
                )
                for body in self.harnesses
            ),
            machines=self.machines(self.provider),
            runs_per_instance_type=self.runs_per_instance_type,
            external_id=self.external_id,
            name=self.name,
            tags=tuple(self.tags),
            budget_usd=self.budget_usd,
        )


def shown_harness(task: HarnessTask) -> dict[str, Any]:
    """A harness as responses show it, with digests in place of files."""
    document = task.model_dump(mode="json", exclude={"files"})
    return {**document, "files": [FileOut.of(file).model_dump(mode="json") for file in task.files]}
