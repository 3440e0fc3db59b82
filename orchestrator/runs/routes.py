"""REST for runs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Path, Query, Response
from fastapi.responses import FileResponse
from pydantic import Discriminator, Tag
from sqlmodel import Session

from orchestrator.archives import queries as archive_queries
from orchestrator.commands.schemas import CommandRunCreate
from orchestrator.costs.views import rates_of
from orchestrator.datasets.errors import UnknownBenchmark
from orchestrator.datasets.packs.pack import Entry
from orchestrator.db.idempotency import Idempotency, keyed
from orchestrator.errors import Invalid, NotFound
from orchestrator.harnesses.schemas import HarnessRunCreate
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, RUN, Policy, Router
from orchestrator.http.problems import TAG
from orchestrator.http.schemas import Cursor, IdempotencyKey, Limit, Page
from orchestrator.models import queries as model_queries
from orchestrator.retention.queries import is_pinned
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.bounds import stored_item
from orchestrator.runs.labels import service as label_service
from orchestrator.runs.labels.labels import MAX_TAG
from orchestrator.runs.labels.schemas import LabelsChange
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.reports import queries as report_queries
from orchestrator.runs.reports.model_names import name_of_model, names_by_run
from orchestrator.runs.reports.scores import score_detail
from orchestrator.runs.schemas import (
    ArchiveOut,
    ArtefactOut,
    AttemptOut,
    BenchmarkUsed,
    ItemOut,
    LogLine,
    LogsOut,
    MachineOut,
    RunComparison,
    RunCreate,
    RunCreated,
    RunDetail,
    RunOut,
    ScoreDetail,
)
from orchestrator.runs.views.compare import compare
from runner.contract.events import ItemResult, Outcome
from runner.contract.run_spec import RunKind

router = Router(prefix="/api/container-runs", tags=["runs"])

RunId = Annotated[str, Path(min_length=1, max_length=60, description="A run's id.")]
ModelFilter = Annotated[int | None, Query(ge=0, le=2**31 - 1)]
BatchFilter = Annotated[str | None, Query(max_length=60, pattern=r"^[0-9a-zA-Z-]*$")]
Trigger = Annotated[
    str | None,
    Query(
        max_length=40, pattern="^[a-z_]*$", description="`manual`, `schedule` (or `scheduled`), `batch`, `retry`, `grade`."
    ),
]
TagFilter = Annotated[str | None, Query(min_length=1, max_length=MAX_TAG, description="Only runs with this tag.")]
TRIGGER_NAMES = {"scheduled": "schedule"}


def kind_of(body: Any) -> str:
    kind = body.get("kind", "benchmark") if isinstance(body, dict) else getattr(body, "kind", "benchmark")
    return f"{TAG}{kind}" if kind in ("command", "harness") else f"{TAG}benchmark"


RunBody = Annotated[
    Annotated[RunCreate, Tag(f"{TAG}benchmark")]
    | Annotated[CommandRunCreate, Tag(f"{TAG}command")]
    | Annotated[HarnessRunCreate, Tag(f"{TAG}harness")],
    Discriminator(kind_of),
]


@router.post("", policy=Policy(RUN, spends=True), status_code=202)
async def create_run(
    body: RunBody,
    context: Context,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> RunCreated:
    """Queue a run. Responds once it is stored; a container is started as soon as there is room."""
    key = keyed("POST /api/container-runs", idempotency_key)
    run_id = await _queued(body, context, key)
    response.headers["location"] = f"/api/container-runs/{run_id}"
    return RunCreated(run_id=run_id)


async def _queued(body: RunCreate | CommandRunCreate | HarnessRunCreate, context: Context, key: Idempotency | None) -> str:
    if isinstance(body, CommandRunCreate):
        return await context.commands.create(body.request(), key)
    if isinstance(body, HarnessRunCreate):
        return await context.harnesses.create(body.request(context.settings.reuse_answers), key)
    return await context.runs.create(body.request(context.settings.reuse_answers), key)


@router.get("", policy=Policy(READ))
async def list_runs(
    context: Context,
    limit: Limit = 50,
    after: Cursor = None,
    status: Status | None = None,
    model_id: ModelFilter = None,
    batch_id: BatchFilter = None,
    trigger_type: Trigger = None,
    tag: TagFilter = None,
) -> Page[RunOut]:
    """Runs, newest first."""

    def read(session: Session) -> list[RunOut]:
        rows = run_queries.page(
            session,
            limit=limit + 1,
            after=after or None,
            status=status and status.value,
            model_id=model_id,
            batch_id=batch_id or None,
            trigger_type=TRIGGER_NAMES.get(trigger_type or "", trigger_type) or None,
            tag=tag,
        )
        names = names_by_run(session, rows)
        return [RunOut.of(row, names[row.id], context.waiting_for(row.id)) for row in rows]

    rows = await context.db.read(read)
    return Page(items=rows[:limit], next=rows[limit - 1].id if len(rows) > limit else None)


@router.get("/{run_id}", policy=Policy(READ))
async def get_run(run_id: RunId, context: Context) -> RunDetail:
    await context.runs.get(run_id)

    def read(session: Session) -> RunDetail:
        row = run_queries.get(session, run_id)
        assert row is not None
        usage, tries = run_queries.usage(session, run_id), run_queries.attempts(session, run_id)
        vcpu_s, gib_s = sum(attempt.vcpu_s for attempt in tries), sum(each.gib_s for each in tries)
        return RunDetail(
            **RunOut.of(row, name_of_model(session, row), context.waiting_for(row.id)).model_dump(),
            attempts=[AttemptOut.of(attempt, usage.get(attempt.number, [])) for attempt in tries],
            outcomes=item_queries.outcome_counts(session, run_id),
            plan=[BenchmarkUsed.of(part) for part in row.task.benchmarks],
            artefacts=[ArtefactOut.of(artefact) for artefact in run_queries.artefacts(session, run_id)],
            archive=ArchiveOut.of(archive_queries.get(session, run_id)),
            machine=MachineOut(
                vcpu_s=vcpu_s,
                gib_s=gib_s,
                throttled_s=sum(attempt.throttled_s for attempt in tries),
                cost_usd=rates_of(context.settings).cost(vcpu_s, gib_s),
            ),
            pinned=is_pinned(session, run_id),
        )

    return await context.db.read(read)


@router.get("/{run_id}/score", policy=Policy(READ))
async def get_score(run_id: RunId, context: Context) -> ScoreDetail:
    """The score so far with its groups. Groups are empty if the dataset has changed since the run; a command has none."""
    run = await context.runs.get(run_id)
    if run.kind == RunKind.COMMAND:
        return ScoreDetail(run_id=run_id, benchmarks={})
    digests = {part.name: part.pack_digest for part in run.task.benchmarks}

    def facts(name: str) -> dict[str, Entry]:
        try:
            same = context.catalogue.get(name).pack_digest == digests.get(name)
            return {entry.id: entry for entry in context.catalogue.entries(name)} if same else {}
        except UnknownBenchmark:
            return {}

    def read(session: Session) -> ScoreDetail:
        model = model_queries.get(session, run.model_id)
        cut_off = model.training_cutoff.isoformat() if model and model.training_cutoff else None
        return ScoreDetail(
            run_id=run_id, benchmarks=score_detail(item_queries.both_verdicts(session, run_id), facts, cut_off)
        )

    return await context.db.read(read)


@router.get("/{run_id}/comparison", policy=Policy(READ))
async def compare_with_base(
    run_id: RunId,
    context: Context,
    base: Annotated[str, Query(max_length=60, description="The run to compare with. Default: the one it repeats.")] = "",
) -> RunComparison:
    """Compare a run with another on the problems that both have, by the exact paired test."""
    row = await context.runs.get(run_id)
    base_id = base or row.retry_of
    if base_id is None:
        raise Invalid("base: name the run to compare with; this one repeats no other")
    other = await context.runs.get(base_id)
    if RunKind.COMMAND in (row.kind, other.kind):
        raise Invalid("runs of commands have figures, not items: GET /api/commands/compare compares them")

    def read(session: Session) -> RunComparison:
        verdicts = [report_queries.verdicts(session, one.id) for one in (other, row)]
        return RunComparison.of(row.id, other.id, compare(verdicts).against[0])

    return await context.db.read(read)


@router.get("/{run_id}/items", policy=Policy(READ))
async def list_items(
    run_id: RunId,
    context: Context,
    limit: Limit = 100,
    after: Annotated[int | None, Query(ge=-1, le=2**31 - 1)] = None,
    outcome: Outcome | None = None,
) -> Page[ItemOut]:
    """Results of a run in plan order, without the large texts."""
    await context.runs.get(run_id)
    rows = await context.db.read(
        lambda s: item_queries.page(s, run_id, limit=limit + 1, after=after, outcome=outcome and outcome.value)
    )
    items = [ItemOut.of(row) for row in rows[:limit]]
    return Page(items=items, next=str(items[-1].position) if len(rows) > limit else None)


@router.get("/{run_id}/items/{position}", policy=Policy(READ))
async def get_item(run_id: RunId, position: Annotated[int, Path(ge=0, le=2**31 - 1)], context: Context) -> ItemResult:
    """One complete result: prompt, answer, code, tests, usage, calls."""
    await context.runs.get(run_id)
    row = await context.db.read(lambda s: item_queries.at(s, run_id, position))
    if row is None:
        raise NotFound(f"run {run_id} has no result at position {position} (yet); /items lists the existing ones")
    return stored_item(row.data, row.outcome)


@router.get("/{run_id}/logs", policy=Policy(READ))
async def get_logs(
    run_id: RunId,
    context: Context,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Limit = 500,
    attempt: Annotated[int | None, Query(ge=1, le=10_000)] = None,
) -> LogsOut:
    """The runner's log and the end of its container's output, for the newest or the given attempt."""
    await context.runs.get(run_id)

    def read(session: Session) -> LogsOut:
        rows = event_queries.log_lines(session, run_id, after_number=after, limit=limit + 1)
        attempts = run_queries.attempts(session, run_id)
        if attempt is not None:
            attempts = [row for row in attempts if row.number == attempt]
            if not attempts:
                raise Invalid(f"run {run_id} has no attempt {attempt}")
        lines = [
            LogLine(at=row.at, attempt=row.attempt, level=row.data.get("level", "info"), message=row.data["message"])
            for row in rows[:limit]
        ]
        tail = attempts[-1].log_tail if attempts else None
        return LogsOut(lines=lines, container_log=tail or "", next=str(rows[limit - 1].id) if len(rows) > limit else None)

    return await context.db.read(read)


@router.patch("/{run_id}", policy=Policy(RUN))
async def change_labels(run_id: RunId, body: LabelsChange, context: Context) -> RunOut:
    """Change the name, the tags or the note of a run, whatever its state."""
    await label_service.change_labels(context.db, run_id, body.model_dump(exclude_unset=True))
    return await _out(run_id, context)


@router.post("/{run_id}/cancel", policy=Policy(RUN), status_code=202)
async def cancel_run(run_id: RunId, context: Context) -> RunOut:
    """Cancel a run. A pending run ends at once; a live one ends when its container is confirmed gone."""
    await context.runs.cancel(run_id)
    context.signals.look()
    return await _out(run_id, context)


@router.post("/{run_id}/retry", policy=Policy(RUN, spends=True), status_code=202)
async def retry_run(
    run_id: RunId, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> RunCreated:
    """Create a run that keeps the finished results and paid answers of an ended run and redoes the rest."""
    key = keyed("POST retry", idempotency_key)
    new_id = await context.runs.retry(run_id, key)
    response.headers["location"] = f"/api/container-runs/{new_id}"
    return RunCreated(run_id=new_id)


async def _out(run_id: str, context: Context) -> RunOut:
    def read(session: Session) -> RunOut:
        row = run_queries.get(session, run_id)
        assert row is not None
        return RunOut.of(row, name_of_model(session, row), context.waiting_for(row.id))

    return await context.db.read(read)


_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


@router.get(
    "/{run_id}/artefacts/{name}",
    policy=Policy(READ, deadline=False),
    response_class=FileResponse,
    responses=_FILE,
)
async def get_artefact(run_id: RunId, name: Annotated[str, Path(max_length=100)], context: Context) -> FileResponse:
    """Download one file that the runner uploaded. It is sent as a download, whatever type it claims to be."""
    await context.runs.get(run_id)
    row = await context.db.read(lambda s: run_queries.artefact(s, run_id, name))
    root = (context.settings.data.absolute() / "artefacts").resolve()
    path = (root / row.run_id / row.name).resolve() if row is not None else None
    if path is None or not path.is_relative_to(root) or not await asyncio.to_thread(path.is_file):
        raise NotFound(f"run {run_id} has no file {name!r}; GET /api/container-runs/{run_id} lists the existing ones")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)
