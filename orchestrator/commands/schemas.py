"""Request and response bodies of command benchmarks: requests, results of a run, and comparisons."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StrictInt, model_validator

from orchestrator.commands.results import CommandRun, ComparedFigure, FigureOver, Group, Repeat, figures_of
from orchestrator.commands.service import NewCommand
from orchestrator.http.schemas import Answer, Body, Number, Text
from orchestrator.runs.labels.schemas import Labelled
from orchestrator.stats.intervals import Interval
from runner.contract.commands import (
    MAX_FILES,
    MAX_FILES_BYTES,
    Better,
    CommandFile,
    CommandTask,
    FigureRule,
    file_name_problem,
    file_names_problem,
)

MAX_REPEATS = 200
SECRET = re.compile(r"(^|_)(api_?key|key|token|secret|passw(or)?d|credentials?)(_|$)", re.IGNORECASE)


Image = Annotated[Text, Field(min_length=1, max_length=300, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$")]


Program = Annotated[
    Annotated[list[Text], Field(min_length=1, max_length=1000)] | Text,
    Field(description="A list of arguments, or a text for `/bin/sh -c`."),
]
Environment = dict[Text, Text]


def check_command(command: str | list[str]) -> None:
    size = len(command) if isinstance(command, str) else sum(map(len, command))
    if size > 60_000:
        raise ValueError("command: at most 60,000 characters; put what is longer into the image")
    if not (command if isinstance(command, str) else command[0]).strip():
        raise ValueError("command: say what to run")


def check_env(env: Mapping[str, str]) -> None:
    for name, value in env.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"env: {name!r} cannot be the name of a variable")
        if SECRET.search(name):
            raise ValueError(f"env: {name} looks like a secret; the environment is stored and shown, so none belongs here")
        if len(value) > 10_000:
            raise ValueError(f"env: {name} is longer than 10,000 characters")


def argv_of(command: str | list[str]) -> list[str]:
    return ["/bin/sh", "-c", command] if isinstance(command, str) else command


class FigureBody(Body):
    """Where to find a figure in the output. Without pattern and json_path, it is read from a JSON line with this name."""

    name: Annotated[Text, Field(max_length=100)] = ""
    unit: Annotated[Text, Field(max_length=20)] = ""
    better: Better = Better.SMALLER
    pattern: (
        Annotated[Text, Field(max_length=1000, description="With a group `value`, or without a name of its own groups.")]
        | None
    ) = None
    json_path: Annotated[Text, Field(max_length=300, description="Such as `results[0].mean`.")] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.pattern is not None and self.json_path is not None:
            raise ValueError("give either pattern or json_path")
        if self.pattern is None:
            if not self.name.strip():
                raise ValueError("name: a figure needs one, unless a pattern has named groups")
            return self
        try:
            groups = re.compile(self.pattern, re.MULTILINE)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"pattern: not a regular expression: {error}") from None
        if not self.name.strip() and not groups.groupindex:
            raise ValueError("pattern: name a group, as in (?P<seconds>[0-9.]+), or give the figure a name")
        return self


class FileBody(Body):
    """A file for the command's working directory, as text or as base64."""

    name: Annotated[Text, Field(min_length=1, description="A relative path, such as `bench.py`.")]
    content: Text | None = None
    content_base64: Annotated[Text, Field(description="Instead of `content`, for what is no text.")] | None = None
    executable: StrictBool = False

    @model_validator(mode="before")
    @classmethod
    def _not_a_path(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(
                'the API takes {"name": ..., "content": ...}; the command line reads files: benchyard batch run, '
                "or benchyard command run --file"
            )
        return value

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if (problem := file_name_problem(self.name)) is not None:
            raise ValueError(f"name: {self.name!r} {problem}")
        if (self.content is None) == (self.content_base64 is None):
            raise ValueError(f"{self.name}: give either content or content_base64")
        try:
            self.file()
        except ValueError:
            raise ValueError(f"{self.name}: content_base64 is not base64") from None
        return self

    def file(self) -> CommandFile:
        content = self.content_base64
        if content is None:
            content = base64.b64encode((self.content or "").encode()).decode()
        return CommandFile(name=self.name, content=content, executable=self.executable)


class FileOut(Answer):
    """A file of a command, without its content, which is in the run's archive."""

    name: str
    size_bytes: int
    sha256: str
    executable: bool

    @classmethod
    def of(cls, file: CommandFile) -> Self:
        return cls(name=file.name, size_bytes=len(file.data), sha256=file.sha256, executable=file.executable)


def checked_files(bodies: Sequence[FileBody]) -> list[CommandFile]:
    """The files of one command. Raises `ValueError` if they are too many, too large or in conflict with each other."""
    files = [body.file() for body in bodies]
    if len(files) > MAX_FILES:
        raise ValueError(f"files: {len(files)} files; a command may have {MAX_FILES}")
    if (size := sum(len(file.data) for file in files)) > MAX_FILES_BYTES:
        raise ValueError(
            f"files: {size} bytes in all; a command may have {MAX_FILES_BYTES}, what is larger belongs into the image"
        )
    if (problem := file_names_problem([file.name for file in files])) is not None:
        raise ValueError(f"files: {problem}")
    return files


def shown_task(task: CommandTask) -> dict[str, Any]:
    """A task as responses show it, with digests in place of files."""
    document = task.model_dump(mode="json", exclude={"files"})
    return {**document, "files": [FileOut.of(file).model_dump(mode="json") for file in task.files]}


class CommandBody(Body):
    """A command of an allowed image, run repeatedly in one container."""

    image: Image
    command: Program
    name: Annotated[Text, Field(max_length=100, description="Of the benchmark. Default: the program's.")] | None = None
    env: Environment = Field(default_factory=dict, max_length=100, description="No secrets: it is stored and shown.")
    workdir: Annotated[Text, Field(max_length=500, pattern="^/", description="Default: the image's.")] | None = None
    repeats: Annotated[StrictInt, Field(ge=1, le=MAX_REPEATS)] = 5
    warmups: Annotated[StrictInt, Field(ge=0, le=MAX_REPEATS, description="Repeats that are not counted, at first.")] = 0
    timeout_s: Annotated[Number, Field(gt=0, le=24 * 3600, description="Of one repeat.")] = 600.0
    figures: list[FigureBody] = Field(default_factory=list, max_length=50)
    files: list[FileBody] = Field(
        default_factory=list,
        max_length=MAX_FILES,
        description="Put into a working directory of their own before each repeat; 256 KiB in all.",
    )

    @model_validator(mode="after")
    def _usable(self) -> Self:
        checked_files(self.files)
        if self.files and self.workdir is not None:
            raise ValueError("workdir: files get a working directory of their own; give either files or workdir")
        check_command(self.command)
        check_env(self.env)
        return self

    def task(self, image: str | None = None, shared: Sequence[FileBody] = ()) -> CommandTask:
        """The task for its own image or another one, with its own files and those that a batch shares."""
        label = self.name or (self.command.split()[0] if isinstance(self.command, str) else self.command[0])
        return CommandTask(
            name=label.rstrip("/").rsplit("/", 1)[-1].strip()[:100] or "command",
            image=image or self.image,
            argv=argv_of(self.command),
            env=self.env,
            workdir=self.workdir,
            repeats=self.repeats,
            warmups=self.warmups,
            timeout_s=self.timeout_s,
            figures=[FigureRule(**rule.model_dump()) for rule in self.figures],
            files=checked_files([*shared, *self.files]),
        )


class CommandPlace(Body):
    """Where and when a command runs."""

    provider: (
        Annotated[Text, Field(max_length=60, description="`local`, or that of agents; anywhere if not given.")] | None
    ) = None
    priority: Annotated[StrictInt, Field(ge=-1000, le=1000)] = 0
    deadline_s: Annotated[StrictInt, Field(ge=1, le=30 * 24 * 3600)] | None = None


class CommandRunCreate(CommandPlace, Labelled):
    """A run of kind `command`."""

    kind: Literal["command"]
    command: CommandBody
    instance_type: Annotated[Text, Field(max_length=100)] | None = None

    def request(self) -> NewCommand:
        return NewCommand(
            self.command.task(), self.instance_type, self.provider, self.priority, self.deadline_s, labels=self.labels
        )


class IntervalOut(Answer):
    estimate: float
    low: float
    high: float

    @classmethod
    def of(cls, interval: Interval | None) -> Self | None:
        return None if interval is None else cls(estimate=interval.estimate, low=interval.low, high=interval.high)


class FigureOut(Answer):
    """A figure over all repeats that passed, with the 95 % bounds of its mean."""

    name: str
    unit: str
    better: Better
    n: int
    mean: float
    median: float
    low: float | None
    high: float | None
    values: list[float]

    @classmethod
    def of(cls, figure: FigureOver) -> Self:
        summary = figure.summary
        return cls(
            name=figure.name,
            unit=figure.unit,
            better=figure.better,
            n=summary.n,
            mean=summary.mean,
            median=summary.median,
            low=summary.low,
            high=summary.high,
            values=[value for values in figure.values for value in values],
        )


class NamedFigure(Answer):
    name: str
    value: float
    unit: str


class RepeatOut(Answer):
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
    figures: list[NamedFigure]

    @classmethod
    def of(cls, repeat: Repeat) -> Self:
        values = {name: getattr(repeat, name) for name in cls.model_fields if name != "figures"}
        figures = [NamedFigure(name=figure.name, value=figure.value, unit=figure.unit) for figure in repeat.figures]
        return cls(**values, figures=figures)


class CommandOut(Answer):
    """The command of a run and its results."""

    run_id: str
    status: str
    instance_type: str
    image_id: str | None = Field(description="Of the image that was there when it ran.")
    self_reported: bool = Field(description="A task runner measured it, not the kernel's counters of our own containers.")
    task: dict[str, Any]
    repeats: list[RepeatOut]
    figures: list[FigureOut]

    @classmethod
    def of(cls, run: CommandRun) -> Self:
        return cls(
            run_id=run.run_id,
            status=run.status,
            instance_type=run.instance_type,
            image_id=run.image_id,
            self_reported=run.self_reported,
            task=shown_task(run.task),
            repeats=[RepeatOut.of(repeat) for repeat in run.repeats],
            figures=[FigureOut.of(figure) for figure in figures_of([run])],
        )


class GroupOut(Answer):
    label: str
    run_ids: list[str]
    command: str
    image: str
    image_ids: list[str]
    instance_type: str
    provider: str | None
    repeats: int = Field(description="Those that passed and count.")
    failed: int
    figures: list[FigureOut]

    @classmethod
    def of(cls, group: Group) -> Self:
        first = group.runs[0]
        repeats = [repeat for run in group.runs for repeat in run.repeats]
        return cls(
            label=group.label,
            run_ids=[run.run_id for run in group.runs],
            command=first.task.name,
            image=first.task.image,
            image_ids=sorted({run.image_id for run in group.runs if run.image_id}),
            instance_type=first.instance_type,
            provider=first.provider,
            repeats=sum(repeat.counts for repeat in repeats),
            failed=sum(not repeat.counts for repeat in repeats),
            figures=[FigureOut.of(figure) for figure in figures_of(group.runs)],
        )


class ComparedOut(Answer):
    figure: str
    group: str
    against: str
    verdict: str = Field(description="`better`, `worse`, `no_difference` (none was seen) or `too_few` (repeats).")
    ratio: IntervalOut | None = Field(description="Of the geometric means, at 95 %.")
    difference: IntervalOut | None = Field(description="Of the means, where values are not all positive.")
    sentence: str

    @classmethod
    def of(cls, compared: ComparedFigure) -> Self:
        return cls(
            figure=compared.figure,
            group=compared.group,
            against=compared.against,
            verdict=compared.comparison.verdict.value,
            ratio=IntervalOut.of(compared.comparison.ratio),
            difference=IntervalOut.of(compared.comparison.difference),
            sentence=compared.sentence,
        )


class CommandsCompared(Answer):
    groups: list[GroupOut]
    comparisons: list[ComparedOut]
    notes: list[str] = Field(description="What to bear in mind, such as commands that are not the same.")
