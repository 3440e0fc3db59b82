"""What a list of prices says of a model, and which entry is meant by a model's name. Pure, except that the list that
ships with the package is read from its file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from importlib.resources import files
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.prices.age import age_warning

_SNAPSHOT = re.compile(r"(?:-\d{8}|-\d{4}-\d{2}-\d{2}|@\d{8}|-latest|-0)$")
"""What providers append to a name for one of its versions. A version with a price of its own has an entry of its own."""

Price = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LongPromptFacts(_Strict):
    """Prices of calls with more input than `above_tokens`."""

    above_tokens: Tokens
    input_price: Price | None = None
    output_price: Price | None = None
    cached_input_price: Price | None = None
    cache_write_price: Price | None = None


class Facts(_Strict):
    """Prices in US dollars per million tokens, and sizes in tokens. The names are those of the model catalogue."""

    input_price: Price
    output_price: Price
    cached_input_price: Price | None = None
    cache_write_price: Price | None = None
    reasoning_price: Price | None = None
    batch_input_price: Price | None = None
    batch_output_price: Price | None = None
    long_prompt_prices: LongPromptFacts | None = None
    context_tokens: Tokens | None = None
    training_cutoff: date | None = None

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


@dataclass(frozen=True)
class Entry:
    provider: str
    model: str
    facts: Facts
    source: str
    as_of: datetime
    shipped: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.provider, self.model


@dataclass(frozen=True)
class PriceTable:
    """Entries by provider and model. Of two entries for a model, the newer one counts; on the same day the imported one."""

    entries: Mapping[tuple[str, str], Entry] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> PriceTable:
        newest: dict[tuple[str, str], Entry] = {}
        for entry in entries:
            other = newest.get(entry.key)
            if other is None or (entry.as_of, not entry.shipped) > (other.as_of, not other.shipped):
                newest[entry.key] = entry
        return cls(newest)

    def find(self, provider: str, name: str) -> Entry | None:
        """The entry of this very name, else of the name without its version."""
        exact = self.entries.get((provider, name))
        return exact or self.entries.get((provider, _SNAPSHOT.sub("", name)))


@dataclass(frozen=True)
class ListSummary:
    """How many models the lists have, and how old they are."""

    shipped: int
    imported: int
    old: int
    oldest: date | None
    newest: date | None
    imported_at: datetime | None
    imported_from: str


def price_list_summary(entries: Iterable[Entry], now: datetime) -> ListSummary:
    shipped: list[Entry] = []
    imported: list[Entry] = []
    for entry in entries:
        (shipped if entry.shipped else imported).append(entry)
    dates = sorted(entry.as_of.date() for entry in shipped)
    return ListSummary(
        shipped=len(shipped),
        imported=len(imported),
        old=sum(age_warning(entry.as_of, now) is not None for entry in (*shipped, *imported)),
        oldest=dates[0] if dates else None,
        newest=dates[-1] if dates else None,
        imported_at=max((entry.as_of for entry in imported), default=None),
        imported_from=imported[0].source if imported else "",
    )


def shipped_entries() -> list[Entry]:
    """The list of the package. A file that does not follow its schema is an error of the package."""
    data = json.loads(files("orchestrator.prices").joinpath("published.json").read_text())
    return [entry for row in data["entries"] for entry in _entries_of(row)]


def _entries_of(row: dict[str, Any]) -> list[Entry]:
    row = dict(row)
    provider, models, source = row.pop("provider"), row.pop("models"), row.pop("source")
    as_of = datetime.combine(date.fromisoformat(row.pop("as_of")), time(), UTC)
    facts = Facts.model_validate(row)
    return [Entry(provider, model, facts, source, as_of, shipped=True) for model in models]
