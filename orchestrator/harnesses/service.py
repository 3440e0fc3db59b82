"""Runs of kind `harness`: checked and queued like any other. Commits before it returns; launches nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from orchestrator.commands.service import check_image
from orchestrator.db.idempotency import LATER, Idempotency
from orchestrator.runs.labels.labels import NO_LABELS, Labels
from orchestrator.runs.queueing.drafts import Harness, HarnessRunTask, PlannedBenchmark
from orchestrator.runs.service import RunService
from orchestrator.settings import Settings
from runner.contract.harness import HarnessTask

ADAPTER = "harness"
CONCURRENCY = 32
"""How many calls of a harness are made at once, unless the request says otherwise. Most harnesses have a limit too."""


@dataclass(frozen=True)
class NewHarness:
    """A request whose fields are already validated."""

    task: HarnessTask
    model: int | str
    instance_type: str | None = None
    provider: str | None = None
    priority: int = 0
    deadline_s: int | None = None
    budget_usd: float | None = None
    concurrency: int = CONCURRENCY
    reuse_answers: bool = False
    trigger_type: str = "manual"
    labels: Labels = field(default=NO_LABELS, metadata={LATER: True})


def harness_task(task: HarnessTask) -> HarnessRunTask:
    """The digest covers all that decides the questions and verdicts, so that runs with the same digest can be compared."""
    same = task.model_dump(mode="json", exclude={"files"})
    same["files"] = sorted([file.name, file.sha256, file.executable] for file in task.files)
    digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
    unplanned = PlannedBenchmark(name=task.name, adapter=ADAPTER, pack_digest=f"sha256:{digest}", problem_ids=[])
    return HarnessRunTask(harness=task, benchmarks=[unplanned])


class HarnessRuns:
    def __init__(self, settings: Settings, runs: RunService, *, engine_name: str) -> None:
        self._settings, self._runs, self._engine_name = settings, runs, engine_name

    async def create(self, request: NewHarness, idempotency: Idempotency | None = None) -> str:
        """Store a pending run and return its id. With an idempotency key, the same request returns the same id."""
        return await self._runs.queue(await self.draft(request), idempotency and idempotency.of(request))

    async def draft(self, request: NewHarness) -> Harness:
        """The draft for a request. Raises `Invalid` or `NotFound` if this service would never run it."""
        check_image(request.task.image, request.provider, self._settings, self._engine_name)
        instance_type = self._runs.check_instance_type(request.instance_type, request.provider)
        model = await self._runs.find_model(request.model)
        return Harness(
            task=harness_task(request.task),
            model_id=model.id,
            instance_type=instance_type,
            deadline_s=request.deadline_s or self._settings.default_deadline_s,
            provider=request.provider,
            priority=request.priority,
            budget_usd=request.budget_usd,
            concurrency=request.concurrency,
            reuse_answers=request.reuse_answers,
            trigger_type=request.trigger_type,
            labels=request.labels,
        )
