"""Aliases for the run API: `/api/runs` with `benchmark_names`, and `/run/{external_id}`.

Each route only calls the one that it is an alias of.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from fastapi import Path, Response
from pydantic import Discriminator, Field, Tag, model_validator
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.batches import routes as batches
from orchestrator.batches.schemas import BatchDetail
from orchestrator.commands.schemas import CommandRunCreate
from orchestrator.errors import NotFound
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, RUN, Policy, Router
from orchestrator.http.problems import TAG
from orchestrator.http.schemas import Cursor, IdempotencyKey, Limit, Page, Text
from orchestrator.runs import routes as container_runs
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.routes import BatchFilter, ModelFilter, RunId, TagFilter, Trigger
from orchestrator.runs.schemas import RunCreate, RunCreated, RunDetail, RunOut

router = Router(prefix="/api/runs", tags=["runs"])
bare = Router(tags=["batches"], include_in_schema=False)

ExternalId = Annotated[str, Path(min_length=1, max_length=60, pattern=r"^[0-9a-zA-Z-]+$")]
Names = Annotated[list[Annotated[Text, Field(min_length=1, max_length=100)]], Field(max_length=20)]


class RunByNames(RunCreate):
    """A run that takes `benchmark_names` in place of `benchmarks`."""

    benchmark_names: Annotated[Names | None, Field(description="The same as `benchmarks`.")] = None

    @model_validator(mode="before")
    @classmethod
    def _one_of_both(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or fields.get("benchmark_names") is None:
            return fields
        names = fields["benchmark_names"]
        if fields.get("benchmarks") not in (None, names):
            raise ValueError("benchmark_names: it is another name for benchmarks; give only one of them")
        return {**fields, "benchmarks": names}


class RunWithNames(RunOut):
    benchmark_names: list[str] = Field(description="The same as `benchmarks`.")

    @classmethod
    def named(cls, run: RunOut) -> Self:
        return cls(**run.model_dump(), benchmark_names=run.benchmarks)


class RunDetailWithNames(RunDetail):
    benchmark_names: list[str] = Field(description="The same as `benchmarks`.")


RunsBody = Annotated[
    Annotated[RunByNames, Tag(f"{TAG}benchmark")] | Annotated[CommandRunCreate, Tag(f"{TAG}command")],
    Discriminator(container_runs.kind_of),
]


@router.post("", policy=Policy(RUN, spends=True), status_code=202)
async def create_named_run(
    body: RunsBody, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> RunCreated:
    """Alias of `POST /api/container-runs`."""
    return await container_runs.create_run(body, context, response, idempotency_key)


@router.get("", policy=Policy(READ))
async def list_named_runs(
    context: Context,
    limit: Limit = 50,
    after: Cursor = None,
    status: Status | None = None,
    model_id: ModelFilter = None,
    batch_id: BatchFilter = None,
    trigger_type: Trigger = None,
    tag: TagFilter = None,
) -> Page[RunWithNames]:
    """Alias of `GET /api/container-runs`."""
    runs = await container_runs.list_runs(context, limit, after, status, model_id, batch_id, trigger_type, tag)
    return Page(items=[RunWithNames.named(run) for run in runs.items], next=runs.next)


@router.get("/{run_id}", policy=Policy(READ))
async def get_named_run(run_id: RunId, context: Context) -> RunDetailWithNames:
    """Alias of `GET /api/container-runs/{run_id}`. The paths below it also work under both prefixes."""
    run = await container_runs.get_run(run_id, context)
    return RunDetailWithNames(**run.model_dump(), benchmark_names=run.benchmarks)


@bare.get("/run/{external_id}", policy=Policy(READ))
async def get_external(external_id: ExternalId, context: Context) -> BatchDetail | RunDetail:
    """The batch with this external id or id, or else the run with this id."""
    try:
        return await batches.get_batch(external_id, context)
    except NotFound:
        return await container_runs.get_run(external_id, context)


class PathAliases:
    """Middleware that rewrites `/api/runs/...` to `/api/container-runs/...`; it runs outside all other middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_alias(scope["method"], scope["path"]):
            raw = scope.get("raw_path") or b""
            path = _RUNS.sub("/api/container-runs", scope["path"], count=1)
            scope = {**scope, "path": path, "raw_path": raw.replace(b"/api/runs", b"/api/container-runs", 1)}
        await self._app(scope, receive, send)


_RUNS = re.compile(r"/api/runs")
_OWN = re.compile(r"/api/runs(/[^/]+)?", re.DOTALL)


def is_alias(method: str, path: str) -> bool:
    """Whether a path under `/api/runs/` has no route of its own in this module."""
    if not path.startswith("/api/runs/"):
        return False
    return not (method in ("GET", "HEAD") and _OWN.fullmatch(path))
