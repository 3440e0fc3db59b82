"""Keeps the model catalogue in step with the providers' lists: adds new models, marks missing ones without deleting them,
and never overwrites what a person entered. The slug, `provider/name`, is a model's identity.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.upstream.model_lists import ListedModel, ListFailed, list_models
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.prices.service import PriceLists
from orchestrator.system.clock import Clock
from runner.contract.run_spec import Protocol

MAX_SLUG_CHARS = 199
_NOT_IN_SLUGS = re.compile(r"[^a-z0-9._:/-]+")

log = structlog.get_logger()

ListModels = Callable[[Provider], Awaitable[list[ListedModel]]]


@dataclass
class SyncResult:
    """Slugs by change, and errors by provider."""

    providers: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


class ModelSync:
    """Asks every configured provider; one that fails changes nothing."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        directory: ProviderDirectory,
        list_of: ListModels | None = None,
        price_lists: PriceLists | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._price_lists = price_lists
        self._directory = directory
        self._list_of = list_of or (lambda provider: list_models(provider, directory.env, clock=clock))

    @property
    def _providers(self) -> list[Provider]:
        env = self._directory.env
        return [provider for provider in self._directory.current.values() if provider.configured(env)]

    async def run(self) -> SyncResult:
        providers = self._providers
        result = SyncResult(providers=[provider.name for provider in providers])
        lists = await asyncio.gather(*(self._ask(provider, result) for provider in providers))
        for provider, listed in zip(providers, lists, strict=True):
            if listed:  # an empty list does not prove that all models are gone
                await self._db.write(lambda s, p=provider, m=listed: _store(s, p, m, self._clock.now(), result))  # type: ignore[misc]
        if self._price_lists is not None and result.added:
            await self._price_lists.apply()
        return result

    async def run_in_background(self) -> None:
        """Runs when the service starts; a failure is only logged."""
        if not self._providers:
            return
        try:
            result = await self.run()
        except DatabaseUnavailable as error:
            log.warning("models not synced", action="models_sync_failed", error=str(error))
            return
        counts = {"added": len(result.added), "returned": len(result.returned), "missing": len(result.missing)}
        log.info("models synced", action="models_synced", providers=result.providers, failed=result.failed, **counts)

    async def _ask(self, provider: Provider, result: SyncResult) -> list[ListedModel]:
        try:
            return await self._list_of(provider)
        except ListFailed as error:
            result.failed[provider.name] = str(error)
            return []


def slug_of(provider: str, name: str) -> str:
    return f"{provider}/{_NOT_IN_SLUGS.sub('-', name.lower())}"[:MAX_SLUG_CHARS]


def _store(session: Session, provider: Provider, listed: Sequence[ListedModel], now: datetime, result: SyncResult) -> None:
    rows = model_queries.of_provider(session, provider.name)
    by_name = {row.name: row for row in rows}
    names = {model.name for model in listed}
    for row in rows:
        if row.archived_at is not None:
            continue
        if row.name in names and row.missing_since is not None:
            row.missing_since, row.updated_at = None, now
            result.returned.append(row.slug)
        elif row.name not in names and row.missing_since is None and row.slug == slug_of(provider.name, row.name):
            row.missing_since = row.updated_at = now
            result.missing.append(row.slug)
        session.add(row)
    result.added += [row.slug for row in _new(provider, listed, by_name, now) if model_queries.add_new(session, row)]


def _new(provider: Provider, listed: Iterable[ListedModel], names: Collection[str], now: datetime) -> list[LlmModel]:
    """Rows for models with new names. Removed models count as known and are not added again."""
    protocol = Protocol.ANTHROPIC if Protocol.ANTHROPIC in provider.protocols else min(provider.protocols)
    return [
        LlmModel(
            slug=slug_of(provider.name, model.name),
            provider=provider.name,
            name=model.name,
            display_name=model.display_name,
            protocol=protocol.value,
            created_at=now,
            updated_at=now,
        )
        for model in listed
        if model.name not in names
    ]
