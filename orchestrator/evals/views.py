"""Evals and eval sets as the REST API and the pages show them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from orchestrator.evals import queries as eval_queries
from orchestrator.evals.schemas import EvalDetail, EvalOut, EvalSetOut
from orchestrator.evals.service import no_eval
from orchestrator.evals.tables import Eval
from orchestrator.http.context import Services
from orchestrator.http.schemas import Page
from orchestrator.models import queries as model_queries


def eval_list(session: Session, rows: Sequence[Eval]) -> list[EvalOut]:
    slugs = model_queries.slugs(session, (row.model_id for row in rows))
    disputed = eval_queries.disputed_counts(session, [row.id for row in rows])
    return [EvalOut.of(row, slugs.get(row.model_id), disputed.get(row.id, 0)) for row in rows]


async def eval_detail(eval_id: str, context: Services) -> EvalDetail:
    def read(session: Session) -> EvalDetail:
        row = eval_queries.whole(session, eval_id)
        if row is None:
            raise no_eval(eval_id)
        model = model_queries.get(session, row.model_id)
        slug = model.slug if model else None
        disputed = eval_queries.disputed_counts(session, [eval_id]).get(eval_id, 0)
        return EvalDetail.whole(row, slug, eval_queries.versions(session, row.eval_set_id, row.name), disputed)

    return await context.db.read(read)


async def eval_sets(context: Services, limit: int, after: str | None) -> Page[EvalSetOut]:
    views = await context.evals.sets(limit=limit + 1, after=after or None)
    return Page(
        items=[EvalSetOut.of(view) for view in views[:limit]], next=views[limit - 1].row.id if len(views) > limit else None
    )
