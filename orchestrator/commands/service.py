"""Runs of kind `command`: checked, planned and queued like any other. It commits before it answers and launches nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.engines.docker.guest_images import is_allowed, refusal
from orchestrator.errors import Invalid
from orchestrator.runs.plan import Plan
from orchestrator.runs.scheduling.placement import LOCAL
from orchestrator.runs.service import Idempotency, NewRun, RunService, add_once, pending_run
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.unasked_model import COMMAND_MODEL, unasked_model
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from runner.contract.commands import CommandTask
from runner.contract.run_spec import BenchmarkSpec, RunKind

REPEAT = "repeat"
"""What stands for the problem: each sample of it is a repeat."""
ADAPTER = "command"


@dataclass(frozen=True)
class NewCommand:
    """A request, already checked for form."""

    task: CommandTask
    instance_type: str | None = None
    provider: str | None = None
    priority: int = 0
    deadline_s: int | None = None
    trigger_type: str = "manual"


def command_plan(task: CommandTask) -> Plan:
    """One item for each repeat. The digest is of what is run, its files included, whatever the image and however often."""
    same = task.model_dump(mode="json", exclude={"image", "repeats", "warmups", "files"})
    if task.files:
        same["files"] = sorted([file.name, file.sha256, file.executable] for file in task.files)
    digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    spec = BenchmarkSpec(name=task.name, adapter=ADAPTER, pack_digest=f"sha256:{digest}", problem_ids=[REPEAT])
    return Plan((spec,), task.repeats, ({"command": task.model_dump(mode="json")},))


def command_run(request: NewCommand, instance_type: str, model_id: int, deadline_s: int, now: datetime) -> ContainerRun:
    """The row; `add_run` stores it."""
    shape = NewRun(
        model=COMMAND_MODEL,
        samples_per_problem=request.task.repeats,
        provider=request.provider,
        concurrency=1,
        priority=request.priority,
        trigger_type=request.trigger_type,
    )
    plan = command_plan(request.task)
    run = pending_run(shape, plan, model_id=model_id, instance_type=instance_type, deadline_s=deadline_s, now=now)
    run.kind = RunKind.COMMAND.value
    return run


class CommandRuns:
    def __init__(
        self,
        db: Database,
        settings: Settings,
        clock: Clock,
        runs: RunService,
        *,
        engine_name: str,
        wake: Callable[[], None],
    ) -> None:
        self._db, self._settings, self._clock = db, settings, clock
        self._runs, self._engine_name, self._wake = runs, engine_name, wake

    async def create(self, request: NewCommand, idempotency: Idempotency | None = None) -> str:
        """Store a pending run and return its id. With an idempotency key, the same request gives the same id."""
        digest = hashlib.sha256(json.dumps(asdict(request), sort_keys=True, default=str).encode()).hexdigest()
        type_name = self.check(request)
        deadline_s = request.deadline_s or self._settings.default_deadline_s
        now = self._clock.now()

        def insert(session: Session) -> str:
            model = unasked_model(session, now, COMMAND_MODEL)
            run = command_run(request, type_name, model.id or 0, deadline_s, now)
            return add_once(session, run, model.slug, idempotency, digest, daily_budget_usd=None)

        run_id = await self._db.write(insert)
        self._wake()
        return run_id

    def check(self, request: NewCommand) -> str:
        """The instance type; `Invalid` for a command that this service would never run."""
        image, own = request.task.image, self._settings.runner_image
        if image != own and not is_allowed(image, self._settings.command_images):
            raise Invalid(f"{refusal(image, self._settings.command_images)}, for example to {image!r}, and restart")
        if image != own and self._engine_name == "process" and request.provider in (None, LOCAL):
            raise Invalid(
                f"there is no container engine here that could start image {image!r}: install Docker, name the provider "
                f"of an agent that has one, or use {own!r}, which stands for this machine as it is"
            )
        return self._runs.check_instance_type(request.instance_type, request.provider)
