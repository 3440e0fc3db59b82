"""The demo models: in the catalogue from the first start, so that a newcomer can run something at once."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from orchestrator.db import lease_queries, model_queries
from orchestrator.db.tables import LlmModel
from runner.contract import Protocol

DEMO_MODELS = {
    "demo-strong": ("Demo (strong): recorded answers, mostly right", Protocol.ANTHROPIC),
    "demo-weak": ("Demo (weak): recorded answers, often wrong", Protocol.OPENAI_CHAT),
}
SEEDED = "demo models seeded"


def seed_demo_models(session: Session, now: datetime) -> None:
    """Add them once; somebody who deletes them does not get them back."""
    if lease_queries.shared_fact(session, SEEDED, now.isoformat()) != now.isoformat():
        return
    for slug, (title, protocol) in DEMO_MODELS.items():
        if model_queries.by_slug(session, slug) is None:
            session.add(
                LlmModel(
                    slug=slug,
                    provider="demo",
                    name=slug,
                    display_name=title,
                    protocol=protocol.value,
                    input_price=0.0,
                    output_price=0.0,
                    prices_entered_at=now,
                    created_at=now,
                    updated_at=now,
                )
            )
