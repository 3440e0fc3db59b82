"""Stores the eval events of runners, inside the intake's transaction.

Verdicts, counts and contradictions are updated together. A trace is counted once, however often its verdict is sent. An eval
is saved only when its job completes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlmodel import Session

from orchestrator.errors import Conflict, Invalid
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.feedback import contradicts
from orchestrator.evals.tables import Eval, EvalExecution, EvalJob
from orchestrator.jobs import queries as job_queries
from orchestrator.runs.intake.bounds import DETAIL_CHARS, TEXT_CHARS, cut, storable
from orchestrator.runs.queueing.drafts import EvalExecuteTask, EvalGenerateTask
from orchestrator.runs.tables import ContainerRun
from orchestrator.system.identifiers import uuid7
from orchestrator.traces import queries as trace_queries
from runner.contract.evals import (
    MAX_REASON_CHARS,
    EvalTask,
    EvalWrittenEvent,
    JobProgressEvent,
    JobStage,
    Judgement,
    JudgementsEvent,
    Label,
    Round,
)
from runner.contract.run_spec import RunKind

KEPT_JOBS = 16


class EvalEventStore:
    """The intake's event sink for runs of the eval kinds."""

    def __init__(self) -> None:
        self._traces: dict[str, frozenset[int]] = {}

    def task(self, session: Session, run: ContainerRun) -> EvalTask:
        """Returns the task for the runner of a job and clears error and rounds of an earlier attempt."""
        job = _job(session, run)
        job.error_code, job.rounds = None, None
        session.add(job)
        if run.kind == RunKind.EVAL_EXECUTE:
            row = eval_queries.get(session, job.eval_id or "")
            if row is None:
                raise Conflict(f"the eval of job {run.id} is gone")
            return EvalTask(name=row.name, code=row.code, traces=run.items_total - run.items_done, seed=run.seed)
        task = generation_of(run)
        return EvalTask(
            name=task.name,
            criterion=task.criterion,
            traces=len(task.traces),
            seed=task.seed,
            target=task.target,
            draft=task.draft,
            written=job.result is not None,
        )

    def take(
        self,
        session: Session,
        run: ContainerRun,
        event: JobProgressEvent | EvalWrittenEvent | JudgementsEvent,
        now: datetime,
    ) -> dict[str, Any]:
        """Stores an event and returns the data for live streams."""
        job = job_queries.light(session, run.id)
        if job is None:
            raise Invalid(f"run {run.id} is not an eval job")
        if isinstance(event, JobProgressEvent):
            job.stage, job.percent, job.detail = event.stage.value, event.percent, cut(event.detail, DETAIL_CHARS)
            job.stage_done, job.stage_total = event.done, event.total
            if event.round is not None:
                round_fields = _round(event.round)
                job.rounds = [*(job.rounds or []), round_fields]
                session.add(job)
                return {**_facts(job), "round": {key: value for key, value in round_fields.items() if key != "code"}}
        elif isinstance(event, EvalWrittenEvent):
            self._written(session, run, job, event)
        else:
            return self._judgements(session, run, job, event.judgements, now)
        session.add(job)
        return _facts(job)

    def finish(self, session: Session, run: ContainerRun, now: datetime) -> dict[str, Any]:
        """Marks the job as complete. A generated eval is saved here and not earlier."""
        job = _job(session, run)
        if run.kind == RunKind.EVAL_GENERATE:
            job.eval_id = self._save(session, run, job, now)
        job.stage, job.percent = JobStage.COMPLETED.value, 100
        job.stage_done = job.stage_total = None
        session.add(job)
        return {**_facts(job), "eval_id": job.eval_id}

    def gave_up(self, session: Session, run: ContainerRun, code: str | None) -> None:
        job = job_queries.light(session, run.id)
        if job is not None:
            job.error_code = code
            session.add(job)

    def _written(self, session: Session, run: ContainerRun, job: EvalJob, event: EvalWrittenEvent) -> None:
        if run.kind != RunKind.EVAL_GENERATE:
            raise Invalid(f"job {run.id} does not write an eval")
        job.result = {
            "code": cut(event.code, TEXT_CHARS),
            "judgements": [_plain(judgement) for judgement in event.judgements],
            "rounds": [_round(round_) for round_ in event.rounds],
        }
        job.rounds = job.result["rounds"]
        job.stage, job.percent = JobStage.SAVING_EVAL.value, 90
        run.items_done = run.items_total

    def _save(self, session: Session, run: ContainerRun, job: EvalJob, now: datetime) -> str:
        if job.result is None:
            raise Conflict(f"job {run.id} reported completion without sending an eval")
        if eval_queries.lock_set(session, job.eval_set_id) is None:
            raise Conflict(f"the eval set of job {run.id} is gone")
        judgements = {judgement["key"]: judgement for judgement in job.result["judgements"]}
        task = generation_of(run)
        traces = trace_queries.by_numbers(session, [number for number, _, _ in task.examples])
        tests, right, total = [], Counter[bool](), Counter[bool]()
        for number, label, held_out in task.examples:
            verdict = judgements.get(number, {"passed": None, "failure": "crash", "reason": "no verdict came"})
            agrees = verdict["passed"] is not None and verdict["passed"] == (label is Label.POSITIVE)
            total[held_out] += 1
            right[held_out] += agrees
            fields = {key: value for key, value in verdict.items() if key != "key"}
            trace_id = traces[number].id if number in traces else ""
            tests.append({"trace_id": trace_id, "label": label.value, "held_out": held_out, "right": agrees, **fields})
        older = eval_queries.versions(session, job.eval_set_id, task.name)
        row = Eval(
            id=uuid7(now),
            workspace_id=run.workspace_id,
            eval_set_id=job.eval_set_id,
            name=task.name,
            version=older[-1].version + 1 if older else 1,
            description=task.description or task.criterion,
            code=job.result["code"],
            model_id=run.model_id,
            run_id=run.id,
            training_n=total[False],
            training_right=right[False],
            held_out_n=total[True],
            held_out_right=right[True],
            tests=tests,
            rounds=job.result["rounds"],
            created_at=now,
            updated_at=now,
        )
        session.add(row)
        return row.id

    def _judgements(
        self, session: Session, run: ContainerRun, job: EvalJob, judgements: Iterable[Judgement], now: datetime
    ) -> dict[str, Any]:
        if run.kind != RunKind.EVAL_EXECUTE or job.eval_id is None:
            raise Invalid(f"job {run.id} does not execute an eval")
        row = eval_queries.lock(session, job.eval_id)
        if row is None:
            raise Conflict(f"the eval of job {run.id} is gone")
        by_trace = {judgement.key: judgement for judgement in judgements}
        if strangers := by_trace.keys() - self._traces_of(run):
            raise Invalid(f"trace {min(strangers)} is not part of job {run.id}")
        executions = eval_queries.executions_of(session, row.id, list(by_trace))
        fresh = {
            key: judgement
            for key, judgement in by_trace.items()
            if key not in executions or executions[key].run_id != run.id
        }
        ratings = trace_queries.feedback_of(session, row.eval_set_id, fresh.keys())
        eval_queries.store(session, [_execution(row.id, run.id, judgement, now) for judgement in fresh.values()])
        for key, judgement in fresh.items():
            before = executions.get(key)
            rating = ratings[key].rating if key in ratings else None
            row.execution_count += before is None
            row.passed_count += (judgement.passed is True) - (before is not None and before.passed is True)
            row.failure_count += (judgement.failure is not None) - (before is not None and before.failure is not None)
            row.contradiction_count += contradicts(judgement.passed, rating)
            row.contradiction_count -= before is not None and contradicts(before.passed, rating)
            run.items_done += 1
            run.items_passed += judgement.passed is True
            job.spent_ms += judgement.wall_ms
        job.stage = JobStage.EXECUTING.value
        job.stage_done, job.stage_total = run.items_done, run.items_total
        job.percent = 100 * run.items_done // max(run.items_total, 1)
        session.add(row)
        session.add(job)
        average = round(job.spent_ms / run.items_done, 3) if run.items_done else None
        counts = {"passed": run.items_passed, "contradictions": row.contradiction_count, "failures": row.failure_count}
        return {**_facts(job), "average_ms": average, **counts}

    def _traces_of(self, run: ContainerRun) -> frozenset[int]:
        """The traces of a job. They never change, so those of the most recent jobs are cached."""
        traces = self._traces.get(run.id)
        if traces is None:
            assert isinstance(run.task, EvalExecuteTask)
            traces = frozenset(run.task.traces)
            self._traces = {**dict(list(self._traces.items())[1 - KEPT_JOBS :]), run.id: traces}
        return traces


def generation_of(run: ContainerRun) -> EvalGenerateTask:
    assert isinstance(run.task, EvalGenerateTask)
    return run.task


def _round(attempt: Round) -> dict[str, Any]:
    code = None if attempt.code is None else cut(attempt.code, TEXT_CHARS)
    return {**attempt.model_dump(mode="json"), "code": code, "problem": cut(attempt.problem, DETAIL_CHARS)}


def _job(session: Session, run: ContainerRun) -> EvalJob:
    job = job_queries.eval_job(session, run.id)
    if job is None:
        raise Conflict(f"run {run.id} is not an eval job")
    return job


def _facts(job: EvalJob) -> dict[str, Any]:
    facts = {"stage": job.stage, "percent": job.percent, "done": job.stage_done, "total": job.stage_total}
    return {**facts, **({"detail": job.detail} if job.detail else {})}


def _plain(judgement: Judgement) -> dict[str, Any]:
    return {**judgement.model_dump(mode="json"), "reason": storable(judgement.reason[:MAX_REASON_CHARS])}


def _execution(eval_id: str, run_id: str, judgement: Judgement, now: datetime) -> dict[str, Any]:
    values = EvalExecution(
        eval_id=eval_id,
        trace_number=judgement.key,
        run_id=run_id,
        passed=judgement.passed,
        score=judgement.score,
        reason=storable(judgement.reason[:MAX_REASON_CHARS]),
        failure=judgement.failure.value if judgement.failure else None,
        wall_ms=judgement.wall_ms,
        at=now,
    )
    return values.model_dump()
