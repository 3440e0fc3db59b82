"""Who is calling: the run behind a token, with all that the gateway may know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from orchestrator.gateway.ledger.prices import Prices
from orchestrator.gateway.upstream.credentials import SYSTEM, Payer


@dataclass(frozen=True)
class DayCap:
    """What may be spent on one day: by all, by one workspace, or by one user within it."""

    nusd: int
    workspace_id: int | None = None
    user_id: int | None = None

    @property
    def whose(self) -> str:
        if self.user_id is not None:
            return "of this user for the day"
        return "of the day" if self.workspace_id is None else "of the workspace for the day"


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
    day_caps: tuple[DayCap, ...] = ()
    request_timeout_s: float = 600.0
    reuse_since: datetime | None = None  #: answers that other runs bought since then may be used again
    payer: Payer = SYSTEM
    no_key: str | None = None  #: why there is no key that this run may use
    plans: Callable[[str], bool] = lambda key: True  #: whether the plan of the run has a call with this key

    @property
    def capped(self) -> bool:
        return self.budget_nusd is not None or bool(self.day_caps)
