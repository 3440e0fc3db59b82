"""The cost of model calls, as far as it is known. Pure.

The cost of a call is unknown if its model has no price. A sum that includes such calls is unknown too: it is given as a
lower bound, with the number of calls that it lacks, and never as zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class Charged(Protocol):
    """A run, or anything else with a total over its calls."""

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
        """None while the price of any call is unknown."""
        return None if self.unpriced_calls else self.known_usd

    @classmethod
    def of(cls, rows: Iterable[Charged]) -> ModelCost:
        all_rows = list(rows)
        return cls(sum(row.cost_usd for row in all_rows), sum(row.unpriced_calls for row in all_rows))
