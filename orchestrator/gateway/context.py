"""Who is calling: the run behind a token, with all that the gateway may know of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orchestrator.gateway.prices import Prices


@dataclass(frozen=True)
class RunContext:
    """A living run as the gateway sees it. Only its one model may be called, through its one provider."""

    run_id: str
    attempt: int
    slug: str
    provider: str
    model: str
    prices: Prices | None = None
    budget_nusd: int | None = None
    day_budget_nusd: int | None = None
    request_timeout_s: float = 600.0
    reuse_since: datetime | None = None  #: answers that other runs bought since then may be used again

    @property
    def capped(self) -> bool:
        return self.budget_nusd is not None or self.day_budget_nusd is not None
