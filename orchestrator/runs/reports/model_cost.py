"""What model calls cost, as far as that is known. Pure.

A call of a model without a price has a cost that nobody knows. A sum over such calls is not known either: it is at least
what the other calls cost, and it says how many calls are missing from it. It is never given as zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class Charged(Protocol):
    """A run, or anything else with a sum over its calls."""

    @property
    def cost_usd(self) -> float: ...

    @property
    def unpriced_calls(self) -> int: ...


@dataclass(frozen=True)
class ModelCost:
    known_usd: float = 0.0
    unpriced_calls: int = 0

    @property
    def usd(self) -> float | None:
        """None while the price of some call is unknown."""
        return None if self.unpriced_calls else self.known_usd

    @classmethod
    def of(cls, rows: Iterable[Charged]) -> ModelCost:
        all_rows = list(rows)
        return cls(sum(row.cost_usd for row in all_rows), sum(row.unpriced_calls for row in all_rows))
