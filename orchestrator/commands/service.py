"""Runs of kind `command`: checked, planned and queued like any other. Commits before it returns; launches nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from orchestrator.db.idempotency import LATER, Idempotency
from orchestrator.engines.docker.guest_images import is_allowed, refusal
from orchestrator.errors import Invalid
from orchestrator.runs.labels.labels import NO_LABELS, Labels
from orchestrator.runs.queueing.drafts import Command, CommandRunTask, PlannedBenchmark
from orchestrator.runs.scheduling.capacity import LOCAL
from orchestrator.runs.service import RunService
from orchestrator.settings import Settings
from runner.contract.commands import CommandTask

REPEAT = "repeat"
"""The problem id of command runs; each sample of it is a repeat."""
ADAPTER = "command"


@dataclass(frozen=True)
class NewCommand:
    """A request whose fields are already validated."""

    task: CommandTask
    instance_type: str | None = None
    provider: str | None = None
    priority: int = 0
    deadline_s: int | None = None
    trigger_type: str = "manual"
    labels: Labels = field(default=NO_LABELS, metadata={LATER: True})


def command_task(task: CommandTask) -> CommandRunTask:
    """One item per repeat. The digest covers the command and its files, but not the image or the number of repeats."""
    same = task.model_dump(mode="json", exclude={"image", "repeats", "warmups", "files"})
    if task.files:
        same["files"] = sorted([file.name, file.sha256, file.executable] for file in task.files)
    digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    repeats = PlannedBenchmark(name=task.name, adapter=ADAPTER, pack_digest=f"sha256:{digest}", problem_ids=[REPEAT])
    return CommandRunTask(command=task, benchmarks=[repeats])


class ImageRefused(Invalid):
    """The service would never start a container of this image."""


def check_image(image: str, provider: str | None, settings: Settings, engine_name: str) -> None:
    """Raises `ImageRefused` for an image that this service would never start."""
    runner_image = settings.runner_image
    if image != runner_image and not is_allowed(image, settings.command_images):
        raise ImageRefused(f"{refusal(image, settings.command_images)}, for example to {image!r}, and restart")
    if image != runner_image and engine_name == "process" and provider in (None, LOCAL):
        raise ImageRefused(
            f"there is no container engine here that could start image {image!r}: install Docker, name the provider "
            f"of an agent that has one, or use {runner_image!r}, which stands for this machine as it is"
        )


class CommandRuns:
    def __init__(self, settings: Settings, runs: RunService, *, engine_name: str) -> None:
        self._settings, self._runs, self._engine_name = settings, runs, engine_name

    async def create(self, request: NewCommand, idempotency: Idempotency | None = None) -> str:
        """Store a pending run and return its id. With an idempotency key, the same request returns the same id."""
        return await self._runs.queue(self.draft(request), idempotency and idempotency.of(request))

    def draft(self, request: NewCommand) -> Command:
        """The draft for a request. Raises `Invalid` for a command that this service would never run."""
        return Command(
            task=command_task(request.task),
            instance_type=self._checked_type(request),
            deadline_s=request.deadline_s or self._settings.default_deadline_s,
            samples_per_problem=request.task.repeats,
            provider=request.provider,
            priority=request.priority,
            trigger_type=request.trigger_type,
            labels=request.labels,
        )

    def _checked_type(self, request: NewCommand) -> str:
        check_image(request.task.image, request.provider, self._settings, self._engine_name)
        return self._runs.check_instance_type(request.instance_type, request.provider)
