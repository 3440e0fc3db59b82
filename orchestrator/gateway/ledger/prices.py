"""The cost of calls: prices per million tokens, sums in whole nano-dollars so that addition is exact. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal

from orchestrator.gateway.protocols.protocol import TokenUsage

NUSD_PER_USD = 1_000_000_000
_NUSD_PER_USD_PER_MTOK = Decimal(1000)  # one dollar per million tokens is 1,000 nano-dollars per token


@dataclass(frozen=True)
class Prices:
    """US dollars per million tokens; a missing cache price means the input price. `entered_on`: when somebody entered
    them."""

    input_per_mtok: Decimal
    output_per_mtok: Decimal
    cached_input_per_mtok: Decimal | None = None
    cache_write_per_mtok: Decimal | None = None
    entered_on: date | None = None


FREE = Prices(Decimal(0), Decimal(0))


def nusd(usd: Decimal | float) -> int:
    """Dollars to whole nano-dollars, rounded down: a budget is never made larger by rounding."""
    return int(Decimal(str(usd)) * NUSD_PER_USD)


def usd(amount_nusd: int) -> float:
    return amount_nusd / NUSD_PER_USD


def cost_nusd(usage: TokenUsage, prices: Prices) -> int:
    """The cost of the tokens used, rounded up to a whole nano-dollar."""
    plain = max(usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens, 0)
    cached = prices.input_per_mtok if prices.cached_input_per_mtok is None else prices.cached_input_per_mtok
    written = prices.input_per_mtok if prices.cache_write_per_mtok is None else prices.cache_write_per_mtok
    total = (
        plain * prices.input_per_mtok
        + usage.cached_tokens * cached
        + usage.cache_write_tokens * written
        + usage.output_tokens * prices.output_per_mtok
    )
    return _ceil(total * _NUSD_PER_USD_PER_MTOK)


def worst_case_nusd(prompt_bytes: int, max_output_tokens: int, prices: Prices) -> int:
    """The most a call can cost: no tokenizer makes more tokens than there are bytes, and the output is capped."""
    dearest = max(
        prices.input_per_mtok, prices.cached_input_per_mtok or Decimal(0), prices.cache_write_per_mtok or Decimal(0)
    )
    total = prompt_bytes * dearest + max_output_tokens * prices.output_per_mtok
    return _ceil(total * _NUSD_PER_USD_PER_MTOK)


def _ceil(amount: Decimal) -> int:
    return int(amount.to_integral_value(rounding=ROUND_CEILING))
