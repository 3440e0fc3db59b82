"""REST for task runners, under `/api/tasks` and at the unprefixed paths that such runners use; files at signed URLs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Path, Query, Request
from starlette.responses import PlainTextResponse, Response

from orchestrator.errors import Forbidden
from orchestrator.http.policy import AGENT, ANYONE, Audit, Body, Policy, Router
from orchestrator.runs.intake.artefacts import ArtefactStore
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.queueing.plan import command_of
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import same_token
from orchestrator.tasks.addresses import Sign, is_good, script_path, signed_url, upload_path
from orchestrator.tasks.results import shell_script
from orchestrator.tasks.schemas import Done, Task, TaskClaim, TaskComplete, TaskFail, TaskHeartbeat, TaskState
from orchestrator.tasks.service import ClaimedTask, NoTask, TaskService, TaskUpdate

AFTER_DEADLINE = timedelta(minutes=10)
TaskId = Annotated[str, Path(pattern=r"^[0-9a-zA-Z-]{1,60}\.[0-9]{1,9}$")]
FileName = Annotated[str, Path(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}$")]
Expires = Annotated[int, Query(ge=0, le=2**53)]
Signature = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True)
class TaskContext:
    """The services that these handlers need."""

    service: TaskService
    artefacts: ArtefactStore
    settings: Settings
    clock: Clock
    sign: Sign
    ended: Callable[[], None]
    """Makes the loops process an attempt that has ended."""


def task_context_of(request: Request) -> TaskContext:
    tasks: TaskContext = request.app.state.task_context
    return tasks


Desk = Annotated[TaskContext, Depends(task_context_of)]
TASK = Policy(AGENT, body=Body.EVENTS, audit=Audit.REFUSALS)
router = Router(prefix="/api/tasks", tags=["tasks"])
files = Router(prefix="/tasks", tags=["tasks"], include_in_schema=False)
bare = Router(tags=["tasks"], include_in_schema=False)


@bare.post("/claim", policy=TASK)
@router.post("/claim", policy=TASK)
async def claim_task(body: TaskClaim, request: Request, tasks: Desk) -> Task | Done:
    """Claim the next command benchmark of this provider; responds with `done` if there is none."""
    claimed = await tasks.service.claim(body)
    if isinstance(claimed, NoTask):
        return Done(open=claimed.open, detail=claimed.detail)
    return _task(claimed, body, tasks, str(tasks.settings.public_url or request.base_url).rstrip("/"))


@bare.post("/heartbeat", policy=TASK)
@router.post("/heartbeat", policy=TASK)
async def task_heartbeat(body: TaskHeartbeat, tasks: Desk) -> TaskState:
    """Keep the task, and store finished repeats given as `results`. On `cancel`, stop and then report `fail`."""
    update = await tasks.service.heartbeat(body, body.results, body.message)
    return _state(update, "cancel" if update.cancel else "ok")


@bare.post("/complete", policy=TASK)
@router.post("/complete", policy=TASK)
async def complete_task(body: TaskComplete, tasks: Desk) -> TaskState:
    """Report that every repeat is done. The run completes, or fails if no repeat passed."""
    update = await tasks.service.complete(body, body.results)
    tasks.ended()
    return _state(update, "failed" if update.run.status == Status.FAILED else "completed")


@bare.post("/fail", policy=TASK)
@router.post("/fail", policy=TASK)
async def fail_task(body: TaskFail, tasks: Desk) -> TaskState:
    """Give up the task with a reason. Its run is retried, up to three times without progress."""
    update = await tasks.service.fail(body)
    tasks.ended()
    return _state(update, "failed" if update.run.status == Status.FAILED else "retrying")


@files.get("/{task_id}/command.sh", policy=Policy(ANYONE, audit=Audit.NEVER))
async def get_script(task_id: TaskId, tasks: Desk, expires: Expires, signature: Signature) -> Response:
    """The command as a script for sh."""
    _check(tasks, "GET", script_path(task_id), expires, signature)
    run, _ = await tasks.service.running_task(task_id)
    task = command_of(run)
    assert task is not None
    return PlainTextResponse(shell_script(task), media_type="text/x-shellscript")


@files.put(
    "/{task_id}/artefacts/{name}",
    policy=Policy(ANYONE, body=Body.UNLIMITED, deadline=False, audit=Audit.NEVER),
    status_code=204,
)
async def put_file(
    task_id: TaskId, name: FileName, request: Request, tasks: Desk, expires: Expires, signature: Signature
) -> None:
    """Upload a file of the run; a second upload with the same name replaces the first."""
    _check(tasks, "PUT", upload_path(task_id, name), expires, signature)
    _, attempt = await tasks.service.running_task(task_id)
    await tasks.artefacts.store(attempt, name, request.stream())


def _check(tasks: TaskContext, method: str, path: str, expires: int, signature: str) -> None:
    if not is_good(tasks.sign, same_token, method, path, expires, signature, tasks.clock.now()):
        raise Forbidden("the signature of this address is wrong or has expired; use the addresses that claim returned")


def _task(claimed: ClaimedTask, body: TaskClaim, tasks: TaskContext, base: str) -> Task:
    run, task, now = claimed.run, claimed.task, tasks.clock.now()
    until = (run.started_at or now) + timedelta(seconds=run.deadline_s)
    good_for = until - now + AFTER_DEADLINE

    def address(method: str, path: str) -> str:
        return signed_url(tasks.sign, base, method, path, now, good_for)

    return Task(
        command=task.model_dump(mode="json"),
        task_id=claimed.task_id,
        lease=claimed.lease,
        run_id=run.id,
        attempt=claimed.attempt.number,
        name=task.name,
        provider=run.provider or "",
        instance_type=run.instance_type,
        repeats=task.repeats,
        todo=claimed.todo,
        timeout_s=task.timeout_s,
        lease_s=tasks.settings.lease_s,
        heartbeat_s=tasks.settings.heartbeat_s,
        deadline=until,
        script_url=address("GET", script_path(claimed.task_id)),
        uploads={name: address("PUT", upload_path(claimed.task_id, name)) for name in body.uploads},
    )


def _state(update: TaskUpdate, status: str) -> TaskState:
    run = update.run
    return TaskState.model_validate(
        {
            "status": status,
            "run_id": run.id,
            "repeats_done": run.items_done,
            "repeats": run.items_total,
            "lease_until": run.lease_until,
        }
    )
