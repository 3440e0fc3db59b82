"""Providers as pages and REST show them: without secrets, with what was learned and how many models use each."""

from __future__ import annotations

from orchestrator.errors import NotFound
from orchestrator.gateway.providers.directory import ProviderSource
from orchestrator.http.context import Services
from orchestrator.providers.schemas import LearnedOut, ProviderOut


async def described(context: Services, only: str | None = None) -> list[ProviderOut]:
    """All providers, or one, as they are shown."""
    service, book = context.providers.service, context.providers.book
    rows, counts = await service.listed()
    shown = []
    for name, provider in sorted(service.directory.current.items()):
        if only is not None and name != only:
            continue
        learned = [
            LearnedOut(model=model, form=sorted(lesson.form or ()), sentences=lesson.sentences())
            for model, lesson in sorted(book.models_of(provider).items())
        ]
        shown.append(
            ProviderOut.of(
                provider,
                service.directory.source(name) or ProviderSource.BUILT_IN,
                rows.get(name),
                has_key=provider.has_key(service.directory.env),
                models=counts.get(name, 0),
                learned=learned,
            )
        )
    return shown


async def described_one(context: Services, name: str) -> ProviderOut:
    shown = await described(context, name)
    if not shown:
        raise NotFound(f"there is no provider {name}; GET /api/providers lists them")
    return shown[0]
