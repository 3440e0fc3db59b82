"""The model catalogue: add a model, change it, remove it. One that has runs is archived, so that its results stay."""

from __future__ import annotations

from typing import Any

from sqlmodel import Session

from orchestrator.db.idempotency import Idempotency, answer_once
from orchestrator.db.session import Database, DuplicateKey
from orchestrator.errors import Conflict, NotFound
from orchestrator.models import queries
from orchestrator.models.tables import LlmModel
from orchestrator.prices.service import PriceLists, apply_to
from orchestrator.system.clock import Clock
from runner.contract.run_spec import Protocol

PRICES = (
    "input_price",
    "output_price",
    "cached_input_price",
    "cache_write_price",
    "reasoning_price",
    "batch_input_price",
    "batch_output_price",
)
"""The prices of a model per million tokens."""
LONG = "long_prompt_prices"


class ModelCatalogue:
    def __init__(self, db: Database, clock: Clock, price_lists: PriceLists) -> None:
        self._db = db
        self._clock = clock
        self._price_lists = price_lists

    async def add(self, values: dict[str, Any], key: Idempotency | None = None) -> LlmModel:
        """A given price is dated now; without one, the lists of prices are asked. Raises `Conflict` if the slug is taken."""
        now = self._clock.now()
        default = Protocol.ANTHROPIC if values["provider"] == "anthropic" else Protocol.OPENAI_CHAT
        row = LlmModel(
            **{**values, "protocol": str(values["protocol"] or default)},
            prices_entered_at=now if any(values[name] is not None for name in (*PRICES, LONG)) else None,
            created_at=now,
            updated_at=now,
        )

        def add(session: Session) -> dict[str, int | None]:
            if row.prices_entered_at is None:
                apply_to([row], self._price_lists.table_in(session), now)
            session.add(row)
            session.flush()
            return {"model_id": row.id}

        def insert(session: Session) -> LlmModel:
            stored = queries.get(session, answer_once(session, key, now, lambda: add(session))["model_id"])
            if stored is None:
                raise Conflict("the model that this Idempotency-Key made was deleted since; use a new key to add it again")
            return stored

        try:
            return await self._db.write(insert)
        except DuplicateKey as error:
            raise Conflict(f"there is a model {row.slug!r} already; PATCH /api/models/{row.slug} changes it") from error

    async def change(self, model_id: int, changes: dict[str, Any]) -> LlmModel:
        """Changes some fields. A given price is dated now."""
        now = self._clock.now()

        def update(session: Session) -> LlmModel:
            row = queries.lock(session, model_id)
            if row is None:
                raise NotFound(f"the model {model_id} was deleted just now")
            for name, value in changes.items():
                setattr(row, name, str(value) if name == "protocol" else value)
            if any(name in changes for name in (*PRICES, LONG)):
                row.prices_entered_at, row.price_source = now, None
            row.updated_at = now
            session.add(row)
            return row

        return await self._db.write(update)

    async def use_list_price(self, model_id: int) -> LlmModel:
        """Forget the prices that somebody entered and take those of the lists. Raises `NotFound` if they have none."""
        now = self._clock.now()

        def update(session: Session) -> LlmModel:
            row = queries.lock(session, model_id)
            if row is None:
                raise NotFound(f"the model {model_id} was deleted just now")
            table = self._price_lists.table_in(session)
            if table.find(row.provider, row.name) is None:
                raise NotFound(f"no list of prices has {row.name!r} of {row.provider}; enter its prices instead")
            apply_to([row], table, now)
            session.add(row)
            return row

        return await self._db.write(update)

    async def remove(self, model_id: int) -> None:
        now = self._clock.now()

        def remove(session: Session) -> None:
            row = queries.lock(session, model_id)
            if row is None:
                return  # a concurrent request was faster
            if queries.run_count(session, model_id):
                row.archived_at = now
                row.slug = f"{row.slug}~{row.id}"  # frees the slug for another model
                session.add(row)
            else:
                session.delete(row)

        await self._db.write(remove)
