"""A trace is removed with what people and evals said of it; the counts of evals follow in the same transaction."""

from __future__ import annotations

from sqlmodel import Session

from orchestrator.errors import Conflict
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.feedback import contradicts
from orchestrator.evals.service import no_trace
from orchestrator.jobs import queries as job_queries
from orchestrator.traces import queries as trace_queries


def remove_trace(session: Session, trace_id: str) -> None:
    """`Conflict` while a job works on it. What evals said of it when they were made stays in their tests."""
    number = trace_queries.numbers(session, [trace_id]).get(trace_id)
    if number is None:
        raise no_trace(trace_id)
    ids = eval_queries.judges_of(session, number)
    evals = [row for row in (eval_queries.lock(session, each) for each in sorted(ids)) if row is not None]
    for job_id in job_queries.open_eval_jobs(session):
        if number in _traces(job_queries.payload(session, job_id)):
            raise Conflict(f"job {job_id} works on trace {trace_id!r}; wait until it is over, or cancel it")
    for row in evals:
        execution = eval_queries.executions_of(session, row.id, [number]).get(number)
        said = trace_queries.feedback_of(session, row.eval_set_id, [number]).get(number)
        if execution is not None:
            row.execution_count -= 1
            row.passed_count -= execution.passed is True
            row.failure_count -= execution.failure is not None
            row.contradiction_count -= contradicts(execution.passed, said.rating if said else None)
            session.add(row)
            session.expunge(execution)
    session.flush()
    eval_queries.forget_trace(session, number)
    trace_queries.delete_trace(session, number)


def _traces(payload: dict[str, list[object]]) -> set[object]:
    examples = [each[0] for each in payload.get("examples", []) if isinstance(each, list)]
    return {*payload.get("traces", []), *payload.get("probes", []), *examples}
