"""REST for traces: import, list, search, delete."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request
from sqlmodel import Session

from orchestrator.errors import Invalid
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.schemas import LabelFilter, LeftOutLine, TraceOut, TracesImported
from orchestrator.evals.service import known_set, no_trace
from orchestrator.http.context import Context
from orchestrator.http.policy import ADMIN, READ, RUN, Body, Policy, Router
from orchestrator.http.problems import DatabaseErrorRoute
from orchestrator.http.schemas import Limit, Page
from orchestrator.traces import queries as trace_queries
from orchestrator.traces.reading import Format
from orchestrator.traces.searching import search_traces
from orchestrator.traces.service import remove_trace

router = Router(prefix="/api/traces", route_class=DatabaseErrorRoute, tags=["evals"])

_LINES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "JSON lines or an array of traces, OTLP JSON with gen_ai attributes, a Langfuse export; also gzip.",
        "content": {
            # Any content type is accepted. This one stands for JSON lines and gzip because client generators know it.
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {}},
        },
    }
}
SetQuery = Annotated[str | None, Query(max_length=60)]
Project = Annotated[str | None, Query(max_length=100, pattern=r"^[^\x00]*$")]


@router.post("", policy=Policy(RUN, body=Body.FILE, deadline=False), status_code=201, openapi_extra=_LINES)
async def import_traces(
    request: Request,
    context: Context,
    format: Format = Format.AUTO,
    project: Project = None,
    eval_set_id: Annotated[str | None, Query(max_length=60, description="Labels become feedback in this set.")] = None,
) -> TracesImported:
    """Import traces. Unusable lines are skipped and reported; traces that exist already are not changed."""
    async with context.uploads.receive("traces", request.stream()) as path:
        report = await context.trace_import.import_file(path, form=format, project=project or "", eval_set_id=eval_set_id)
    if not report.imported and not report.unchanged:
        first = f": line {report.left_out_lines[0].line}: {report.left_out_lines[0].reason}" if report.left_out_lines else ""
        lines = [{"line": left_out.line, "reason": left_out.reason} for left_out in report.left_out_lines]
        raise Invalid(f"the body has no trace that could be used{first}", left_out=report.left_out, left_out_lines=lines)
    return TracesImported(
        imported=report.imported,
        unchanged=report.unchanged,
        labelled=report.labelled,
        left_out=report.left_out,
        left_out_lines=[LeftOutLine(line=left_out.line, reason=left_out.reason) for left_out in report.left_out_lines],
        trace_ids=report.ids,
    )


@router.get("", policy=Policy(READ, deadline=False))
async def list_traces(
    context: Context,
    limit: Limit = 50,
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")] = 0,
    project: Project = None,
    eval_set_id: SetQuery = None,
    label: LabelFilter | None = None,
    text: Annotated[
        str | None, Query(max_length=200, pattern=r"^[^\x00]*$", description="In any field, in any case; 20,000 a page.")
    ] = None,
) -> Page[TraceOut]:
    """Traces in order of arrival, with large values cut. With an eval set: the traces of its project, with their labels."""
    if label is not None and eval_set_id is None:
        raise Invalid("label: labels belong to an eval set; name it with eval_set_id")

    def read(session: Session) -> tuple[list[TraceOut], int | None]:
        project_name = project
        if eval_set_id is not None:
            project_name = project_name if project_name is not None else known_set(session, eval_set_id).project
        contradicted_by = None
        if label is LabelFilter.CONTRADICTED:
            newest = eval_queries.newest(session, [eval_set_id or ""]).get(eval_set_id or "")
            contradicted_by = newest.id if newest else ""
        search = search_traces(
            session,
            project_name,
            eval_set_id,
            label=label.value if label is not None and contradicted_by is None else None,
            contradicted_by=contradicted_by,
            text=text or "",
            after=after,
            limit=limit,
        )
        return [TraceOut.brief(trace, feedback) for trace, feedback in search.rows], search.next

    traces, more = await context.db.read(read)
    return Page(items=traces, next=None if more is None else str(more))


@router.get("/{trace_id:path}", policy=Policy(READ, deadline=False))
async def get_trace(
    trace_id: Annotated[str, Path(min_length=1, max_length=200)], context: Context, eval_set_id: SetQuery = None
) -> TraceOut:
    def read(session: Session) -> TraceOut:
        row = trace_queries.by_id(session, trace_id)
        if row is None:
            raise no_trace(trace_id)
        feedback = {}
        if eval_set_id is not None:
            feedback = trace_queries.feedback_of(session, known_set(session, eval_set_id).id, [row.number or 0])
        return TraceOut.of(row, feedback.get(row.number or 0))

    return await context.db.read(read)


@router.delete("/{trace_id:path}", policy=Policy(ADMIN, deadline=False), status_code=204)
async def delete_trace(trace_id: Annotated[str, Path(min_length=1, max_length=200)], context: Context) -> None:
    """Delete a trace with its labels and verdicts and update the counts of evals. 409 while a job works on it."""
    await context.db.write(lambda session: remove_trace(session, trace_id))
