"""Response bodies of costs: quotes, and what runs have cost in model calls and machine time."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from orchestrator.http.schemas import Answer
from orchestrator.runs.schemas import COST, KNOWN_COST, UNPRICED


class RangeOut(Answer):
    low: float
    expected: float | None
    high: float


class JudgeQuoteOut(Answer):
    """What a model as judge adds; it is part of the quote's cost."""

    model: str
    calls: int
    price_known: bool
    cost_usd: RangeOut | None
    worst_case_usd: float | None


class QuoteOut(Answer):
    model: str
    benchmarks: list[str]
    items: int
    turns: int = Field(default=1, description="The most answers of the model per item; the worst case counts all of them.")
    source: str
    runs_used: int
    price_known: bool
    price_warning: str | None = Field(default=None, description="Says so if its prices are older than 90 days.")
    budget_promise: str | None = Field(
        default=None, description="What a budget can promise, if the server of the model ignores the token limit."
    )
    cost_usd: RangeOut | None
    worst_case_usd: float | None
    seconds: RangeOut | None
    judges: list[JudgeQuoteOut] = Field(default=[], description="Their part of the cost, if models judge the answers.")
    sentence: str


class CostOut(Answer):
    day: str | None
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None = Field(description=COST)
    known_cost_usd: float = Field(description=KNOWN_COST)
    unpriced_calls: int = Field(description=UNPRICED)
    lost_usd: float
    lost_sends: int


class CostsOut(Answer):
    items: list[CostOut]
    today_usd: float = Field(description="What is known to have been spent today, lost sends included.")
    unpriced_calls: int = Field(description="Calls of these days that are missing from the sums: their model had no price.")
    daily_budget_usd: float | None


class By(StrEnum):
    DAY = "day"  #: one line per day and model
    MODEL = "model"  #: one line per model


class MachineBy(StrEnum):
    RUN = "run"
    MODEL = "model"
    BATCH = "batch"
    SCHEDULE = "schedule"
    DAY = "day"


class MachineCostOut(Answer):
    key: str
    runs: int
    vcpu_s: float
    gib_s: float
    throttled_s: float
    cost_usd: float


class IdleCostOut(Answer):
    """Usage of an instance type's warm runners on one day while they waited for a run."""

    day: str
    instance_type: str
    ready_s: float = Field(description="How long they stood ready, all together.")
    vcpu_s: float
    gib_s: float
    cost_usd: float


class MachineCostsOut(Answer):
    items: list[MachineCostOut]
    idle: list[IdleCostOut] = Field(description="Runners that stood ready, in no item above; of the whole installation.")
    idle_cost_usd: float
    vcpu_hour_usd: float
    gib_hour_usd: float
