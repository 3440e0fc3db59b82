"""Builds the service of providers, and keeps it in step with the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.accounts.vault import Vault
from orchestrator.db.session import Database
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.providers.form_book import FormBook
from orchestrator.providers.learned_forms import LearnedForms
from orchestrator.providers.probe import Probe
from orchestrator.providers.service import ProviderService
from orchestrator.system.clock import Clock


@dataclass(frozen=True)
class Providers:
    service: ProviderService
    book: FormBook
    learned: LearnedForms
    probe: Probe


@asynccontextmanager
async def open_providers(
    db: Database, clock: Clock, vault: Vault, directory: ProviderDirectory, data_dir: Path
) -> AsyncIterator[Providers]:
    """Reads the stored ones before anything may ask for them."""
    book = FormBook()
    service = ProviderService(db, clock, vault, directory, data_dir)
    learned = LearnedForms(db, clock, book)
    await service.refresh()
    await learned.refresh()
    following = asyncio.create_task(service.keep_on(learned.refresh), name="providers of other processes")
    try:
        yield Providers(service, book, learned, Probe(db, clock, directory, book))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
