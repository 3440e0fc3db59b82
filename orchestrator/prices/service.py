"""Prices from lists: the list that ships, lists that are imported, and how they reach the models of the catalogue.

What a person entered is never changed, nor is the cost of a call that was made: the ledger keeps costs, not prices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import Invalid, NotFound
from orchestrator.models.tables import LlmModel
from orchestrator.prices import queries
from orchestrator.prices.entries import Entry, Facts, PriceTable, shipped_entries
from orchestrator.prices.litellm import PriceFile, read_price_file
from orchestrator.prices.tables import PriceEntry
from orchestrator.system.clock import Clock


@dataclass(frozen=True)
class PriceUpdate:
    """`changed`: slugs of the models that got other prices or facts."""

    file: PriceFile
    changed: list[str]


class PriceLists:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._shipped = shipped_entries()

    async def table(self) -> PriceTable:
        return await self._db.read(self.table_in)

    def table_in(self, session: Session) -> PriceTable:
        return PriceTable.of([*self._shipped, *map(_entry, queries.imported(session))])

    async def find(self, provider: str, name: str) -> Entry:
        entry = (await self.table()).find(provider, name)
        if entry is None:
            raise NotFound(f"no list of prices has {name!r} of {provider}; `benchyard prices list` shows what is there")
        return entry

    async def update(self, raw: bytes, source: str) -> PriceUpdate:
        """Replace the imported list by this one, dated now. Raises `Invalid` if nothing in it can be used."""
        now = self._clock.now()
        file = await asyncio.to_thread(read_price_file, raw)
        if not file.facts:
            some = "; ".join(f"{name}: {why}" for name, why in list(file.left_out.items())[:3])
            raise Invalid(f"the list has no chat model with usable prices. {some}".strip())
        rows = [
            PriceEntry(provider=provider, model=model, facts=facts.as_json(), source=source, as_of=now)
            for (provider, model), facts in file.facts.items()
        ]

        def store(session: Session) -> list[str]:
            queries.replace_all(session, rows)
            session.flush()
            return self.apply_in(session)

        return PriceUpdate(file, await self._db.write(store))

    async def apply(self) -> list[str]:
        """Give the models of the catalogue what the lists say; for the start of the service."""
        return await self._db.write(self.apply_in)

    def apply_in(self, session: Session) -> list[str]:
        """Returns the slugs of the models that changed."""
        return apply_to(queries.open_to_lists(session), self.table_in(session), self._clock.now())


def apply_to(models: Iterable[LlmModel], table: PriceTable, now: datetime) -> list[str]:
    """Set prices of models whose prices nobody entered. Context size and cut-off are filled in where they are missing."""
    changed = []
    for model in models:
        entry = table.find(model.provider, model.name)
        if entry is not None and _set(model, entry):
            model.updated_at = now
            changed.append(model.slug)
    return changed


def _set(model: LlmModel, entry: Entry) -> bool:
    facts = entry.facts
    values = {name: getattr(facts, name) for name in Facts.model_fields if name.endswith("_price")}
    values["long_prompt_prices"] = (
        None if facts.long_prompt_prices is None else facts.long_prompt_prices.model_dump(exclude_none=True)
    )
    values |= {"price_source": entry.source[:300], "prices_entered_at": entry.as_of}
    for name in ("context_tokens", "training_cutoff"):
        if getattr(model, name) is None:
            values[name] = getattr(facts, name)
    before = {name: getattr(model, name) for name in values}
    for name, value in values.items():
        setattr(model, name, value)
    return before != values


def _entry(row: PriceEntry) -> Entry:
    return Entry(row.provider, row.model, Facts.model_validate(row.facts), row.source, row.as_of)
