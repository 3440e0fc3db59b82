"""The catalogue's model of runs that ask none: archived from the start, so that no list shows it and no run can ask it."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from orchestrator.db import model_queries
from orchestrator.db.tables import LlmModel
from runner.contract import Protocol

UNASKED_MODEL = "stored-answers"
UNASKED_PROVIDER = "stored"


def unasked_model(session: Session, now: datetime) -> LlmModel:
    """Within the caller's transaction; made when it is first needed."""
    model = model_queries.by_slug(session, UNASKED_MODEL)
    if model is None:
        model = LlmModel(
            slug=UNASKED_MODEL,
            provider=UNASKED_PROVIDER,
            name=UNASKED_MODEL,
            display_name="Stored answers: no model is asked",
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
