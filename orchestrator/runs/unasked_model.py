"""The catalogue's models of runs that ask none: archived from the start, so that no list shows one and no run can ask it.

The row of commands only stands behind the foreign key of a run: `model_shown` keeps it out of everything that people see.
"""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from runner.contract.run_spec import EVAL_KINDS, Protocol, RunKind

UNASKED_MODEL = "stored-answers"
UNASKED_PROVIDER = "stored"
COMMAND_MODEL = "no-model"
_NAMES = {UNASKED_MODEL: "Stored answers: no model is asked", COMMAND_MODEL: "No model: a command is measured"}


def model_shown(kind: str, slug: str) -> str | None:
    """The model of a run as answers, pages and files name it; None for a run that asks none."""
    if kind == RunKind.COMMAND or (kind in EVAL_KINDS and slug == UNASKED_MODEL):
        return None
    return slug


def unasked_model(session: Session, now: datetime, slug: str = UNASKED_MODEL) -> LlmModel:
    """Within the caller's transaction; made when it is first needed."""
    model = model_queries.by_slug(session, slug)
    if model is None:
        model = LlmModel(
            slug=slug,
            provider=UNASKED_PROVIDER,
            name=slug,
            display_name=_NAMES[slug],
            protocol=Protocol.OPENAI_CHAT.value,
            input_price=0.0,
            output_price=0.0,
            archived_at=now,
            created_at=now,
            updated_at=now,
        )
        session.add(model)
        session.flush()
    return model
