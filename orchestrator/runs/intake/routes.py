"""The API for runners. Every path needs the token of a live attempt and reaches only that attempt's own run."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response, StreamingResponse
from pydantic import ValidationError
from sqlmodel import Session

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.db.session import Database
from orchestrator.errors import ClientError, Code, Conflict
from orchestrator.grading import queries as given_queries
from orchestrator.http.policy import ANYONE, Audit, Body, Policy, Router
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.artefacts import ArtefactStore
from orchestrator.runs.intake.authentication import Callers, Turns, authenticated_route, bearer
from orchestrator.runs.intake.service import Intake
from orchestrator.runs.queueing.plan import run_spec
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.runs.warm_pool.hand_off import HOLD_S, WarmHandOff
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.system.memory import give_back
from runner.contract.events import EventBatch
from runner.contract.run_spec import (
    CONTRACT_VERSION,
    ClaimAnswer,
    ClaimedRun,
    ClaimRequest,
    GivenAnswer,
    Problem,
    RunKind,
    Wait,
)

RunId = Annotated[str, Path(min_length=1, max_length=60)]
CHUNK = 256 * 1024
PART = 50
"""Number of problems whose stored answers are read at once."""


class WrongContract(ClientError):
    status, code, title = 426, Code.CONFLICT, "Contract version differs"


@dataclass(frozen=True)
class RunnerDeps:
    settings: Settings
    clock: Clock
    db: Database
    catalogue: Catalogue
    intake: Intake
    hand_off: WarmHandOff
    artefacts: ArtefactStore
    gateway_url: Callable[[], str]
    wake: Callable[[], None]
    trace_lines: Callable[[Database, ContainerRun], AsyncIterator[bytes]]
    """Streams the traces that an eval job still has to process."""


def runner_router(deps: RunnerDeps) -> Router:
    callers = Callers(deps.db, deps.clock)
    turns = Turns()
    router = Router(prefix="/runner", include_in_schema=False, route_class=authenticated_route(callers, deps.hand_off.knows))

    @router.post("/claim", policy=Policy(ANYONE, body=Body.SMALL, audit=Audit.NEVER))
    async def claim(body: ClaimRequest, request: Request) -> ClaimAnswer:
        if body.contract_version != CONTRACT_VERSION:
            raise WrongContract(
                f"the runner uses contract {body.contract_version}, this orchestrator {CONTRACT_VERSION}; "
                "build it again with `benchyard images build`"
            )
        token = bearer(request)
        if (attempt := await callers.find(token)) is not None:
            claimed = await deps.intake.claim(attempt, body.runner_id)
        else:
            hold_s = min(HOLD_S, deps.settings.request_timeout_s / 2)
            warm_claim = await deps.hand_off.answer(token, body.runner_id, hold_s, body.idle)
            if warm_claim is None:
                return Wait(retry_after_s=0)
            claimed, token = warm_claim.claim, warm_claim.token
        callers.remember(token, claimed.attempt)
        types = deps.settings.instance_types
        name = claimed.attempt.instance_type
        kind = deps.settings.instance_type(name if name in types else deps.settings.default_instance_type)
        door = claimed.attempt.facts.get("door")  # set if a remote runner reaches us through an agent
        spec = run_spec(
            claimed.run,
            claimed.attempt,
            claimed.model,
            instance_type=kind,
            token=token,
            gateway_url=f"{door}/gateway" if door else deps.gateway_url(),
            finished=claimed.finished,
            heartbeat_s=deps.settings.heartbeat_s,
            patience_s=deps.settings.runner_patience_s,
            sandbox_level=deps.settings.least_sandbox_level,
            task=claimed.task,
            judges=claimed.judges,
        )
        return ClaimedRun(spec=spec)

    @router.post("/runs/{run_id}/events", policy=Policy(ANYONE, body=Body.EVENTS, audit=Audit.NEVER))
    async def events(run_id: RunId, request: Request) -> Response:
        attempt = await callers.of(request, run_id, recent=True)
        async with turns.turn(run_id):
            body = b"".join([chunk async for chunk in request.stream()])
            try:
                batch = EventBatch.model_validate_json(body)  # in one step, without intermediate objects
            except ValidationError as error:
                await deps.intake.refused(attempt, error.errors()[0]["msg"])
                raise RequestValidationError(error.errors(include_url=False, include_input=False)) from error
            try:
                ack = await deps.intake.events(attempt, batch)
                if any(event.type in ("complete", "failed") for event in batch.events):
                    deps.wake()
            finally:
                size = len(body)
                del body, batch
                give_back(size)
        return Response(ack.model_dump_json(), media_type="application/json")

    @router.get("/runs/{run_id}/problems", policy=Policy(ANYONE, deadline=False, audit=Audit.NEVER))
    async def problems(run_id: RunId, request: Request) -> StreamingResponse:
        attempt = await callers.of(request, run_id)
        run, finished = await deps.db.read(lambda s: _run_and_finished(s, attempt))
        lines = _lines(deps, run, finished)
        return StreamingResponse(_compressed(lines), media_type="application/x-ndjson", headers={"content-encoding": "gzip"})

    @router.get("/runs/{run_id}/traces", policy=Policy(ANYONE, deadline=False, audit=Audit.NEVER))
    async def traces(run_id: RunId, request: Request) -> StreamingResponse:
        attempt = await callers.of(request, run_id)
        run, _ = await deps.db.read(lambda s: _run_and_finished(s, attempt))
        lines = _compressed(deps.trace_lines(deps.db, run))
        return StreamingResponse(lines, media_type="application/x-ndjson", headers={"content-encoding": "gzip"})

    @router.put(
        "/runs/{run_id}/artefacts/{name}",
        policy=Policy(ANYONE, body=Body.UNLIMITED, deadline=False, audit=Audit.NEVER),
        status_code=204,
    )
    async def artefact(
        run_id: RunId, name: Annotated[str, Path(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}$")], request: Request
    ) -> None:
        attempt = await callers.of(request, run_id)
        run = await deps.db.read(lambda s: run_queries.get(s, run_id))
        if run is None or run.attempt != attempt.number:
            raise Conflict(f"attempt {attempt.number} of run {run_id} is over; this runner must stop")
        await deps.artefacts.store(attempt, name, request.stream())

    return router


def _run_and_finished(session: Session, attempt: Attempt) -> tuple[ContainerRun, set[tuple[str, str, int]]]:
    run = run_queries.get(session, attempt.run_id)
    if run is None or run.attempt != attempt.number:
        raise Conflict(f"attempt {attempt.number} of run {attempt.run_id} is over; this runner must stop")
    return run, set(item_queries.keys(session, run.id))


async def _lines(deps: RunnerDeps, run: ContainerRun, finished: set[tuple[str, str, int]]) -> AsyncIterator[bytes]:
    """The problems that still have an unfinished item, in plan order."""
    for benchmark in run.task.benchmarks:
        items = benchmark.items(run.samples_per_problem)
        problem_ids = list(dict.fromkeys(id_ for id_, index in items if (benchmark.name, id_, index) not in finished))
        for start in range(0, len(problem_ids), PART):
            part = problem_ids[start : start + PART]
            stored: dict[str, Any] = {}
            if run.kind == RunKind.GRADE:
                ask = partial(given_queries.of, run_id=run.id, benchmark=benchmark.name, problem_ids=part)
                stored = await deps.db.read(ask)
            records = await asyncio.to_thread(deps.catalogue.records, benchmark.name, part)
            for problem_id in part:
                answers = (
                    [GivenAnswer.model_validate(answer) for answer in stored[problem_id]] if problem_id in stored else None
                )
                yield await asyncio.to_thread(_line, benchmark.name, problem_id, records, answers)


def _line(benchmark: str, problem_id: str, records: Iterator[dict[str, Any]], answers: list[GivenAnswer] | None) -> bytes:
    problem = Problem(benchmark=benchmark, problem_id=problem_id, record=next(records), given=answers)
    return problem.model_dump_json(exclude={"given"} if answers is None else None).encode() + b"\n"


async def _compressed(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Compresses with gzip and flushes after every line, so that the runner can start while the rest is still being read."""
    compressor = zlib.compressobj(1, wbits=31)
    async for line in lines:
        for start in range(0, len(line), CHUNK):
            if piece := await asyncio.to_thread(compressor.compress, line[start : start + CHUNK]):
                yield piece
        yield compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()
