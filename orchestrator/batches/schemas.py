"""Request and response bodies of batches: the request, the batch by instance type, and the matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, StrictInt, Tag, model_validator

from orchestrator.archives.tables import ArchiveRow
from orchestrator.batches.matrix import Matrix
from orchestrator.batches.service import Machine, NewBatch, NewCommandBatch
from orchestrator.batches.state import BatchState, state_of
from orchestrator.batches.tables import Batch
from orchestrator.commands.schemas import CommandBody, CommandPlace, FileBody, FileOut, Image
from orchestrator.commands.service import NewCommand
from orchestrator.http.problems import TAG
from orchestrator.http.schemas import Answer, Body, Text
from orchestrator.retention.queries import DeletedMembers
from orchestrator.runs.labels.schemas import Tags
from orchestrator.runs.queueing.plan import guest_image
from orchestrator.runs.reasons import sentence
from orchestrator.runs.reports.model_cost import ModelCost
from orchestrator.runs.schemas import COST, INT32, KNOWN_COST, UNPRICED, ArchiveOut, Progress, RunShape, Score
from orchestrator.runs.service import NewRun
from orchestrator.runs.tables import Attempt, ContainerRun
from runner.contract.commands import MAX_FILES, CommandTask

SHOWN = 1000
Member = tuple[ContainerRun, list[str]]
"""A run, and the ids of the runs that it retried."""


TypeNames = Annotated[list[Annotated[Text, Field(min_length=1, max_length=100)]], Field(min_length=1, max_length=100)]


TypesByProvider = Annotated[
    dict[Annotated[Text, Field(min_length=1, max_length=60)], TypeNames], Field(min_length=1, max_length=100)
]
InstanceTypes = Annotated[
    Annotated[TypeNames, Tag(f"{TAG}names")] | Annotated[TypesByProvider, Tag(f"{TAG}providers")],
    Discriminator(lambda value: f"{TAG}providers" if isinstance(value, dict) else f"{TAG}names"),
]


class BatchShape(Body):
    """Fields common to all batches: machines, repeats on each, name."""

    instance_types: Annotated[
        InstanceTypes | None,
        Field(description='Names, or names for each provider: `{"local": ["lite"], "lab": ["standard-2"]}`.'),
    ] = None
    runs_per_instance_type: Annotated[StrictInt, Field(ge=1, le=1000)] = 1
    external_id: Annotated[
        StrictInt | None, Field(ge=0, le=2**53, description="A unix time, unique among batches. Default: now.")
    ] = None
    name: Annotated[Text, Field(max_length=200)] = ""
    tags: Tags = Field(default_factory=list, description="Of each of its runs.")

    def machines(self, provider: str | None) -> tuple[Machine, ...]:
        """The machines for its runs. Raises `ValueError` if providers are given twice, or a type twice for one provider."""
        machines = self.instance_types
        if isinstance(machines, dict) and provider is not None:
            raise ValueError("provider: give either provider, or instance_types for each provider")
        by_provider: Mapping[str | None, Sequence[str | None]] = {
            provider: machines if isinstance(machines, list) else [None]
        }
        if isinstance(machines, dict):
            by_provider = dict(machines.items())
        for names in by_provider.values():
            if len(set(names)) != len(names):
                raise ValueError("instance_types: each may be named once; runs_per_instance_type asks for repeats")
        return tuple(Machine(provider_name, name) for provider_name, names in by_provider.items() for name in names)


class BatchCreate(BatchShape, RunShape):
    """One run for each of models x benchmarks x instance types x repeats. They share `budget_usd` equally."""

    models: Annotated[list[StrictInt | Text], Field(min_length=1, max_length=1000, description="Ids or slugs of models.")]

    @model_validator(mode="after")
    def _once_each(self) -> Self:
        self.machines(self.provider)
        if any(isinstance(model, int) and not 0 <= model <= INT32 for model in self.models):
            raise ValueError("models: an id is a number from 0 upwards")
        return self

    def request(self, reuse_answers: bool) -> NewBatch:
        """`reuse_answers` is the default of the service."""
        common = {name: value for name, value in self.of_a_run(reuse_answers).items() if name != "budget_usd"}
        return NewBatch(
            models=tuple(self.models),
            each=NewRun(model="", **common),
            benchmarks=tuple(self.benchmarks or ()),
            machines=self.machines(self.provider),
            runs_per_instance_type=self.runs_per_instance_type,
            external_id=self.external_id,
            name=self.name,
            tags=tuple(self.tags),
            budget_usd=self.budget_usd,
        )


class CommandBatchCreate(BatchShape, CommandPlace):
    """One run for each of commands x images x instance types x repeats."""

    commands: Annotated[list[CommandBody], Field(min_length=1, max_length=100)]
    images: Annotated[
        list[Image] | None, Field(min_length=1, max_length=100, description="Versions: each command runs in each of them.")
    ] = None

    files: list[FileBody] = Field(default_factory=list, max_length=MAX_FILES, description="For each of the commands.")

    @model_validator(mode="after")
    def _once_each(self) -> Self:
        if self.files and any(body.workdir is not None for body in self.commands):
            raise ValueError("workdir: files get a working directory of their own; give either files or workdir")
        self.machines(self.provider)
        if self.images is not None and len(set(self.images)) != len(self.images):
            raise ValueError("images: each may be named once; runs_per_instance_type asks for repeats")
        cells = [(task.name, task.image) for task in self.tasks()]
        if len(set(cells)) != len(cells):
            raise ValueError("commands: two of them have the same name and image; give them names of their own")
        return self

    def tasks(self) -> list[CommandTask]:
        return [body.task(image, self.files) for image in self.images or (None,) for body in self.commands]

    def shown(self) -> dict[str, Any]:
        """The request as shown to people, with digests in place of files."""
        document = self.model_dump(mode="json", exclude_none=True)
        for part, bodies in (
            (document, self.files),
            *zip(document["commands"], (command.files for command in self.commands), strict=True),
        ):
            part["files"] = [FileOut.of(body.file()).model_dump(mode="json") for body in bodies]
            if not bodies:
                del part["files"]
        return document

    def request(self) -> NewCommandBatch:
        return NewCommandBatch(
            commands=tuple(NewCommand(task, None, None, self.priority, self.deadline_s) for task in self.tasks()),
            machines=self.machines(self.provider),
            runs_per_instance_type=self.runs_per_instance_type,
            external_id=self.external_id,
            name=self.name,
            tags=tuple(self.tags),
        )


class BatchCreated(Answer):
    batch_id: str
    external_id: int
    runs: int


class BatchEnd(Body):
    """How to end a batch early. Runs that have not begun are dropped in either mode."""

    mode: str = Field(
        default="finish", pattern="^(finish|stop)$", description="`finish`: what runs finishes; `stop`: it is stopped."
    )


class BatchRetried(Answer):
    batch_id: str
    run_ids: list[str]


class Current(Answer):
    """The item that a runner is working on."""

    benchmark: str
    problem_id: str
    sample_index: int


class BatchMember(Answer):
    run_id: str
    kind: str
    slot: int
    model_id: int | None
    model: str | None
    benchmark: str
    image: str | None = Field(description="Of a command.")
    status: str
    stage: str | None
    attempt: int
    progress: Progress
    passed: int
    score: Score | None
    cost_usd: float | None = Field(description=COST)
    known_cost_usd: float = Field(description=KNOWN_COST)
    unpriced_calls: int = Field(description=UNPRICED)
    last_heartbeat: datetime | None
    current: Current | None
    reason: str | None
    reason_sentence: str | None
    error_message: str | None
    waiting_for: str | None
    started_at: datetime | None
    completed_at: datetime | None
    earlier: list[str] = Field(description="Runs that this one took up again.")
    archive: ArchiveOut | None


class BatchInstanceType(Answer):
    instance_type: str
    provider: str | None = Field(description="Of its runs, where one was asked for.")
    state: BatchState
    counts: dict[str, int]
    progress: Progress
    last_heartbeat: datetime | None
    current: Current | None
    members: list[BatchMember]


class BatchOut(Answer):
    id: str
    external_id: int
    name: str
    state: BatchState
    runs: int
    deleted_runs: int = Field(default=0, description="Runs of this batch that were deleted; their cost is still counted.")
    counts: dict[str, int]
    progress: Progress
    passed: int
    cost_usd: float | None = Field(description=COST)
    known_cost_usd: float = Field(description=KNOWN_COST)
    unpriced_calls: int = Field(description=UNPRICED)
    created_at: datetime
    end_asked_at: datetime | None
    end_mode: str | None
    completed_at: datetime | None = Field(description="When the last member was over; null before.")
    request: dict[str, Any]

    @classmethod
    def of(
        cls,
        batch: Batch,
        members: Sequence[Member],
        all_runs: Sequence[ContainerRun],
        deleted: DeletedMembers | None = None,
    ) -> Self:
        gone = deleted or DeletedMembers()
        runs = [run for run, _ in members]
        ends = [run.completed_at for run in runs]
        cost = ModelCost.of([*all_runs, gone])
        return cls(
            **{name: getattr(batch, name) for name in Batch.model_fields if name in cls.model_fields},
            state=state_of((run.status for run in runs), end_asked=batch.end_asked_at is not None),
            runs=len(runs),
            counts=_counts(runs),
            progress=_progress(runs),
            passed=sum(run.items_passed for run in runs),
            cost_usd=cost.usd,
            known_cost_usd=cost.known_usd,
            unpriced_calls=cost.unpriced_calls,
            deleted_runs=gone.runs,
            completed_at=max(end for end in ends if end) if ends and all(ends) else None,
        )


class BatchDetail(BatchOut):
    """A batch by instance type, in the order of the request."""

    instance_types: list[BatchInstanceType]


class FragileOut(Answer):
    model: str
    benchmark: str
    problem_id: str
    sample_index: int
    answer_digest: str
    passes_differ: bool = Field(description="Passed here and not there; otherwise only the kind of failure differs.")
    between_types: bool = Field(description="Instance types disagree; otherwise only the repeats on one of them do.")
    official_way: bool = Field(description="Only the official checker's verdict differs.")
    verdicts: dict[str, dict[str, int]] = Field(description="How often each outcome came, by instance type.")


class CellOut(Answer):
    """`instance_type` includes the provider if a batch has several: `lite on lab`."""

    model: str | None = Field(description="Null for commands.")
    benchmark: str
    instance_type: str
    runs: int
    score: Score | None = Field(description="Over all repeats; the samples of a problem are a cluster.")


class MatrixOut(Answer):
    """Whether verdicts depend on the machine. Only identical answers are compared."""

    batch_id: str
    instance_types: list[str]
    cells: list[CellOut]
    items: int
    compared: int = Field(description="Items whose same answer was judged on more than one instance type.")
    repeated: int = Field(description="Items whose same answer was judged more than once.")
    flips: int = Field(description="Items that pass on one instance type and fail on another, with the same answer.")
    fragile_problems: list[str]
    fragile: list[FragileOut] = Field(description="At most 1,000, those on which a score depends first.")
    varied: int = Field(description="Items that got different answers: the model's doing, not the machine's.")
    varied_problems: list[str]
    left_out: int = Field(description="Results that are no verdict: provider_error, infra_error.")

    @classmethod
    def of(cls, batch_id: str, instance_types: list[str], cells: list[CellOut], matrix: Matrix) -> Self:
        return cls(
            batch_id=batch_id,
            instance_types=instance_types,
            cells=cells,
            items=matrix.items,
            compared=matrix.compared,
            repeated=matrix.repeated,
            flips=matrix.flips,
            fragile_problems=matrix.fragile_problems[:SHOWN],
            fragile=[FragileOut(**asdict(problem)) for problem in matrix.fragile[:SHOWN]],
            varied=matrix.varied,
            varied_problems=matrix.varied_problems[:SHOWN],
            left_out=matrix.left_out,
        )


def groups(
    batch: Batch,
    members: Sequence[Member],
    names: Mapping[str, str | None],
    attempts: Mapping[str, Attempt],
    currents: Mapping[str, Current | None],
    archives: Mapping[str, ArchiveRow],
    waiting_for: Mapping[str, str | None],
) -> list[BatchInstanceType]:
    """The members by instance type."""
    machines = dict.fromkeys((run.instance_type, run.provider) for run, _ in members)
    out = []
    for name, provider in machines:
        group_members = [(run, earlier) for run, earlier in members if (run.instance_type, run.provider) == (name, provider)]
        rows = [
            BatchMember(
                **{
                    field: getattr(run, field)
                    for field in BatchMember.model_fields
                    if field in ContainerRun.model_fields and field not in ("score", "waiting_for", "cost_usd")
                },
                run_id=run.id,
                slot=run.batch_slot or 0,
                model=names[run.id],
                image=guest_image(run),
                benchmark=run.benchmarks[0],
                progress=_progress([run]),
                passed=run.items_passed,
                score=Score.of(run.score, len(run.benchmarks)),
                cost_usd=ModelCost(run.cost_usd, run.unpriced_calls).usd,
                known_cost_usd=run.cost_usd,
                last_heartbeat=attempts[run.id].last_event_at if run.id in attempts else None,
                current=currents.get(run.id),
                reason_sentence=sentence(run.reason),
                waiting_for=waiting_for.get(run.id) or run.waiting_for,
                earlier=earlier,
                archive=ArchiveOut.of(archives.get(run.id)),
            )
            for run, earlier in group_members
        ]
        beats = [row.last_heartbeat for row in rows if row.last_heartbeat]
        out.append(
            BatchInstanceType(
                instance_type=name,
                provider=provider,
                state=state_of((run.status for run, _ in group_members), end_asked=batch.end_asked_at is not None),
                counts=_counts([run for run, _ in group_members]),
                progress=_progress([run for run, _ in group_members]),
                last_heartbeat=max(beats, default=None),
                current=next((row.current for row in rows if row.current), None),
                members=rows,
            )
        )
    return out


def _counts(runs: Sequence[ContainerRun]) -> dict[str, int]:
    return dict(sorted(Counter(run.status for run in runs).items()))


def _progress(runs: Sequence[ContainerRun]) -> Progress:
    return Progress(done=sum(run.items_done for run in runs), total=sum(run.items_total for run in runs))
