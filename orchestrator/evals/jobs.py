"""Eval jobs: each is a run of kind `eval_generate` or `eval_execute`, queued in one transaction with its input.

The input of a job is fixed when the job is accepted: later feedback and traces do not change it, so every attempt does the
same work. This module launches nothing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from orchestrator.db.idempotency import Idempotency, answer_once
from orchestrator.db.session import Database
from orchestrator.errors import BadCode, Conflict, NotFound, TooFewExamples
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.service import known_set, no_eval
from orchestrator.evals.tables import Eval, EvalJob, EvalSet
from orchestrator.evals.training_data import NEEDED_PER_LABEL, missing, split
from orchestrator.jobs import queries as job_queries
from orchestrator.models import queries as model_queries
from orchestrator.models.demo import demo_eval_model
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import TERMINAL
from orchestrator.runs.queueing import drafts
from orchestrator.runs.queueing.drafts import EvalExecuteTask, EvalGenerateTask, EvalTasks, draft_again
from orchestrator.runs.queueing.queue import enqueue
from orchestrator.runs.reasons import Reason
from orchestrator.runs.service import RunService
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.traces import queries as trace_queries
from runner.contract.evals import Label
from runner.contract.rules.evals import problem_of
from runner.contract.run_spec import EVAL_KINDS, RunKind

PROBES = 100
"""Unlabelled traces on which an eval is also tried: it must give verdicts on new traces, not only on its examples."""
MAX_TRACES = 100_000


@dataclass(frozen=True)
class Generation:
    """A validated request to generate an eval."""

    model: int | str
    name: str = ""
    """Default: the set's name."""
    description: str = ""
    seed: int = 0
    target_accuracy: float = 0.95
    priority: int = 0
    budget_usd: float | None = None
    instance_type: str | None = None


@dataclass(frozen=True)
class QueuedJob:
    job_id: str
    traces: int
    remaining: int = 0
    """Traces that did not fit into the job; execute the eval again for these."""


class EvalJobs:
    def __init__(
        self, db: Database, settings: Settings, clock: Clock, runs: RunService, *, wake: Callable[[], None]
    ) -> None:
        self._db, self._settings, self._clock, self._runs, self._wake = db, settings, clock, runs, wake

    async def generate(self, set_id: str, request: Generation, idempotency: Idempotency | None = None) -> QueuedJob:
        name = request.name or await self._db.read(lambda s: known_set(s, set_id).name)
        request = replace(request, name=name.strip())
        type_name = self._runs.check_instance_type(request.instance_type)
        await self._db.read(lambda s: known_set(s, set_id))
        now = self._clock.now()
        model = await self._db.write(lambda s: demo_eval_model(s, request.model, now))
        model = model or await self._runs.find_model(request.model)

        def insert(session: Session) -> QueuedJob:
            group = known_set(session, set_id)
            if model.archived_at is None and model_queries.lock(session, model.id or 0) is None:
                raise NotFound(f"there is no model {request.model!r}; GET /api/models lists the existing ones")
            task = EvalGenerateTask(
                name=request.name,
                description=request.description,
                criterion=group.description or group.name,
                seed=request.seed,
                target=request.target_accuracy,
                **_examples(session, group, request.seed),
            )
            draft = self._draft(
                task,
                type_name,
                model_id=model.id,
                priority=request.priority,
                budget_usd=request.budget_usd,
                sample_size=len(task.examples),
                seed=request.seed,
            )
            return self._queue(session, draft, now, set_id)

        return await self._insert(insert, idempotency, [set_id, asdict(request)], now)

    async def draft(
        self, eval_id: str, code: str, description: str | None, idempotency: Idempotency | None = None
    ) -> QueuedJob:
        """Queues a test of code written by a person. If it passes, it becomes the next version of the eval."""
        if await self._db.read(lambda s: eval_queries.get(s, eval_id)) is None:
            raise no_eval(eval_id)
        if (problem := await asyncio.to_thread(problem_of, code)) is not None:
            raise BadCode(f"the code cannot be an eval: {problem}")
        type_name = self._runs.check_instance_type(None)
        now = self._clock.now()

        def insert(session: Session) -> QueuedJob:
            row = eval_queries.get(session, eval_id)
            if row is None:
                raise no_eval(eval_id)
            before = run_queries.get(session, row.run_id)
            seed = before.seed if before is not None else 0
            task = EvalGenerateTask(
                name=row.name,
                description=row.description if description is None else description,
                criterion=row.description,
                seed=seed,
                target=0.0,
                draft=code,
                **_examples(session, known_set(session, row.eval_set_id), seed),
            )
            draft = self._draft(task, type_name, sample_size=len(task.examples), seed=seed)
            return self._queue(session, draft, now, row.eval_set_id)

        return await self._insert(insert, idempotency, [eval_id, code, description], now)

    async def execute(
        self,
        eval_id: str,
        trace_ids: Sequence[str] | None,
        *,
        force: bool = False,
        priority: int = 0,
        instance_type: str | None = None,
        idempotency: Idempotency | None = None,
    ) -> QueuedJob:
        type_name = self._runs.roomiest_type(instance_type)
        now = self._clock.now()

        def insert(session: Session) -> QueuedJob:
            row = eval_queries.lock(session, eval_id)
            if row is None:
                raise no_eval(eval_id)
            if others := eval_queries.open_jobs(session, eval_id=eval_id):
                raise Conflict(f"job {others[0]} executes this eval already; wait until it is over, or cancel it")
            numbers = _trace_numbers(session, row, trace_ids)
            if not force:
                executed = eval_queries.executed(session, eval_id)
                numbers = [number for number in numbers if number not in executed]
            task = EvalExecuteTask(traces=numbers[:MAX_TRACES])
            draft = self._draft(task, type_name, priority=priority, sample_size=len(task.traces))
            queued = self._queue(session, draft, now, row.eval_set_id, eval_id)
            return replace(queued, remaining=len(numbers) - len(task.traces))

        request = [eval_id, trace_ids, force, priority, instance_type]
        return await self._insert(insert, idempotency, request, now)

    async def retry(self, job_id: str, idempotency: Idempotency | None = None) -> str:
        """Queues a new job for the unfinished work of an ended one. It reuses answers already paid for, unless those were
        rejected.
        """
        job = await self._db.read(lambda s: run_queries.get(s, job_id))
        if job is None:
            raise NotFound(f"there is no job {job_id!r}; GET /api/jobs lists the existing ones")
        if job.kind not in EVAL_KINDS:
            return await self._runs.retry(job_id, idempotency)
        now = self._clock.now()

        def insert(session: Session) -> QueuedJob:
            old, job = run_queries.lock(session, job_id), job_queries.eval_job(session, job_id)
            assert old is not None
            assert job is not None
            again = draft_again(old)
            assert isinstance(again, drafts.EvalJob)
            if old.status not in TERMINAL:
                raise Conflict(f"job {job_id} is {old.status}; cancel it first, or wait until it has ended")
            if old.status == "completed":
                raise Conflict(f"job {job_id} has completed; start a new one")
            task = again.task
            here = trace_queries.existing(session, task.traces)
            if isinstance(task, EvalExecuteTask):
                if eval_queries.lock(session, job.eval_id or "") is None:
                    raise no_eval(job.eval_id or "")
                if others := eval_queries.open_jobs(session, eval_id=job.eval_id):
                    raise Conflict(f"job {others[0]} executes this eval already; wait until it is over, or cancel it")
                executed = eval_queries.executed_by(session, job_id)
                remaining: EvalTasks = EvalExecuteTask(
                    traces=[number for number in task.traces if number in here and number not in executed]
                )
            else:
                known_set(session, job.eval_set_id)
                examples = [example for example in task.examples if example[0] in here]
                probes = [number for number in task.probes if number in here]
                remaining = task.model_copy(update={"examples": examples, "probes": probes})
                check_examples([(number, label) for number, label, _ in examples])
            eval_id = job.eval_id if old.kind == RunKind.EVAL_EXECUTE else None
            queued = self._queue(session, replace(again, task=remaining), now, job.eval_set_id, eval_id)
            if old.kind == RunKind.EVAL_GENERATE and old.reason != Reason.EVAL_REFUSED:
                item_queries.copy_answers(session, old.id, queued.job_id)
            return queued

        return (await self._insert(insert, idempotency, [job_id], now)).job_id

    async def _insert(
        self, make: Callable[[Session], QueuedJob], idempotency: Idempotency | None, request: list[Any], now: datetime
    ) -> QueuedJob:
        """Queues a job, or returns the job that the same idempotency key created before."""
        key = idempotency and idempotency.of(request)
        answer = await self._db.write(lambda s: answer_once(s, key, now, lambda: asdict(make(s))))
        self._wake()
        return QueuedJob(**answer)

    def _draft(self, task: EvalTasks, instance_type: str, **more: Any) -> drafts.EvalJob:
        return drafts.EvalJob(task=task, instance_type=instance_type, deadline_s=self._settings.default_deadline_s, **more)

    def _queue(
        self, session: Session, draft: drafts.EvalJob, now: datetime, set_id: str, eval_id: str | None = None
    ) -> QueuedJob:
        run_id = enqueue(session, draft, now=now, daily_budget_usd=self._settings.daily_budget_usd)
        session.add(EvalJob(run_id=run_id, eval_set_id=set_id, eval_id=eval_id))
        session.flush()
        return QueuedJob(run_id, draft.sample_size)


def _examples(session: Session, group: EvalSet, seed: int) -> dict[str, Any]:
    """The input of a job that generates an eval, fixed when the job is accepted."""
    labelled = [(number, Label(rating)) for number, rating in trace_queries.feedback(session, group.id)]
    check_examples(labelled)
    disputed = eval_queries.disputed_in_set(session, group.id)
    examples = split(labelled, seed, disputed.keys())
    return {
        "examples": [(example.number, example.label, example.held_out) for example in examples],
        "disputed": {str(number): _opinion(*verdict) for number, verdict in disputed.items()},
        "probes": _probes(session, group.project, {number for number, _ in labelled}, seed),
    }


def check_examples(labelled: Sequence[tuple[int, Label]]) -> None:
    counts = {label: sum(rating is label for _, rating in labelled) for label in Label}
    if needed := missing(counts):
        have = " and ".join(f"{counts[label]} {label.value}" for label in Label)
        more = " and ".join(f"{number} more {label.value}" for label, number in needed.items())
        raise TooFewExamples(
            f"an eval needs at least {NEEDED_PER_LABEL} positive and {NEEDED_PER_LABEL} negative examples, the set has "
            f"{have}: label {more}",
            needed={label.value: needed.get(label, 0) for label in Label},
            have={label.value: counts[label] for label in Label},
        )


def _probes(session: Session, project: str | None, labelled: set[int], seed: int) -> list[int]:
    others = [number for number in trace_queries.all_numbers(session, project) if number not in labelled]
    return sorted(random.Random(seed).sample(others, min(PROBES, len(others))))


def _opinion(passed: bool, reason: str) -> str:
    return f"{'good' if passed else 'bad'} ({reason})"


def _trace_numbers(session: Session, row: Eval, trace_ids: Sequence[str] | None) -> list[int]:
    if trace_ids is None:
        return trace_queries.all_numbers(session, known_set(session, row.eval_set_id).project)
    numbers = trace_queries.numbers(session, trace_ids)
    if unknown := [trace_id for trace_id in trace_ids if trace_id not in numbers]:
        some = ", ".join(repr(trace_id[:80]) for trace_id in unknown[:3])
        raise NotFound(
            f"there is no trace {some} ({len(unknown)} of {len(trace_ids)} are unknown); GET /api/traces lists them"
        )
    return sorted(set(numbers.values()))
