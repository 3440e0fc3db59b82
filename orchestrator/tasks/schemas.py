"""Request and response bodies for task runners. Requests reject unknown fields, so that a misspelt one is noticed."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.runs.reasons import Reason

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]
FileName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}$")]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
OUTPUT = "output.txt"


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TaskClaim(Request):
    """A task runner asks for a command benchmark."""

    provider: Annotated[Name, Field(description="Runs with this `provider` are given out, and no others.")]
    instance_type: Annotated[str, Field(max_length=100, description="Default: any.")] | None = None
    runner: Annotated[Name, Field(description="How this runner is called in lists.")] = "task-runner"
    wait_s: Annotated[float, Field(ge=0, le=60, description="How long to wait for a task before the answer is done.")] = 0
    uploads: Annotated[list[FileName], Field(max_length=20, description="Files that it will leave.")] = [OUTPUT]


class Task(BaseModel):
    """A command benchmark to run. `command` comes first: all names after it are unique in the response."""

    command: dict[str, Any] = Field(description="Image, arguments, environment, repeats, figures: as `POST` asked for it.")
    status: Literal["task"] = "task"
    task_id: str
    lease: str = Field(description="The secret of this attempt: it comes with every message about the task.")
    run_id: str
    attempt: int
    name: str
    provider: str
    instance_type: str
    repeats: int
    todo: list[int] = Field(description="Numbers of the repeats that are still to be run, from 1.")
    timeout_s: float = Field(description="Of one repeat.")
    lease_s: float = Field(description="Silence of so long, and the same again, loses the task.")
    heartbeat_s: float = Field(description="How often to report.")
    deadline: datetime
    script_url: str = Field(description="The command as a script for sh; this address needs no token.")
    uploads: dict[str, str] = Field(description="Where to PUT each file before `complete`; these need no token.")


class Done(BaseModel):
    status: Literal["done"] = "done"
    open: int = Field(description="Tasks of this provider that have not ended and may yet come back.")
    detail: str


class ReportedFigure(Request):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    value: Annotated[float, Field(allow_inf_nan=False, ge=-1e100, le=1e100)]
    unit: Annotated[str, Field(max_length=20)] = ""
    better: Literal["smaller", "larger"] = "smaller"


class RepeatReport(Request):
    """One repeat, as the runner measured it."""

    repeat: Annotated[int, Field(ge=1, le=100_000)]
    exit_code: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] = 0
    wall_s: Seconds
    user_s: Seconds = 0.0
    system_s: Seconds = 0.0
    peak_bytes: Annotated[int, Field(ge=0, le=2**60)] = 0
    timed_out: bool = False
    figures: Annotated[list[ReportedFigure], Field(max_length=200)] = []
    output: Annotated[str, Field(max_length=100_000, description="The beginning of what it wrote.")] = ""


class TaskMessage(Request):
    task_id: Annotated[str, Field(pattern=r"^[0-9a-zA-Z-]{1,60}\.[0-9]{1,9}$")]
    lease: Annotated[str, Field(min_length=1, max_length=200)]


class TaskHeartbeat(TaskMessage):
    results: Annotated[list[RepeatReport], Field(max_length=200, description="Repeats that are done already.")] = []
    message: Annotated[str, Field(max_length=4000, description="A line for the run's log.")] = ""


class TaskComplete(TaskMessage):
    results: Annotated[list[RepeatReport], Field(max_length=200)] = []


class TaskFailure(StrEnum):
    """The reasons for which a task runner may give up a task."""

    RUNNER_ERROR = Reason.RUNNER_ERROR.value
    ENGINE_ERROR = Reason.ENGINE_ERROR.value
    IMAGE_MISSING = Reason.IMAGE_MISSING.value
    OUT_OF_MEMORY = Reason.OUT_OF_MEMORY.value


class TaskFail(TaskMessage):
    reason: TaskFailure = TaskFailure.RUNNER_ERROR
    message: Annotated[str, Field(max_length=4000, description="What happened, for people.")] = ""
    retry: Annotated[bool, Field(description="False: no attempt can succeed, the run fails at once.")] = True


class TaskState(BaseModel):
    """The result of the message. On `cancel`, stop the command and then report `fail`."""

    status: Literal["ok", "cancel", "completed", "failed", "retrying"]
    run_id: str
    repeats_done: int
    repeats: int
    lease_until: datetime | None = None
