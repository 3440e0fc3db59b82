"""The demo models: in the catalogue from the first start, so that newcomers can start a run at once."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs.scheduling.leading import lease_queries
from runner.contract.run_spec import Protocol

DEMO_MODELS = {
    "demo-strong": ("Demo (strong): recorded answers, mostly right", Protocol.ANTHROPIC),
    "demo-weak": ("Demo (weak): recorded answers, often wrong", Protocol.OPENAI_CHAT),
}
EVAL_MODELS = {
    "demo-eval-good": ("Demo (eval): writes one that works for the sample traces", Protocol.ANTHROPIC),
    "demo-eval-syntax": ("Demo (eval): writes what is not Python", Protocol.OPENAI_CHAT),
    "demo-eval-import": ("Demo (eval): imports what is not allowed", Protocol.OPENAI_CHAT),
    "demo-eval-constant": ("Demo (eval): says the same of every trace", Protocol.OPENAI_RESPONSES),
    "demo-eval-hostile": ("Demo (eval): attacks the machine it runs on", Protocol.ANTHROPIC),
}
"""Used only to generate evals. They are created on demand and archived, to keep them out of lists."""
SEEDED = "demo models seeded"


def seed_demo_models(session: Session, now: datetime) -> None:
    """Adds them once; deleted ones are not added again."""
    if lease_queries.shared_fact(session, SEEDED, now.isoformat()) != now.isoformat():
        return
    for slug, (title, protocol) in DEMO_MODELS.items():
        if model_queries.by_slug(session, slug) is None:
            session.add(_row(slug, title, protocol, now))


def demo_eval_model(session: Session, slug: int | str, now: datetime) -> LlmModel | None:
    """One of the models that only write evals; None for any other slug."""
    if not isinstance(slug, str) or slug not in EVAL_MODELS:
        return None
    model = model_queries.by_slug(session, slug)
    if model is None:
        model = _row(slug, *EVAL_MODELS[slug], now)
        model.archived_at = now
        session.add(model)
        session.flush()
    return model


def _row(slug: str, title: str, protocol: Protocol, now: datetime) -> LlmModel:
    return LlmModel(
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
