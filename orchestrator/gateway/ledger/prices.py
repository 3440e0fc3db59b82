"""The cost of calls: prices per million tokens, sums in whole nano-dollars so that addition is exact. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_CEILING, Decimal
from typing import TypeVar

from orchestrator.gateway.protocols.protocol import TokenUsage

OtherPrice = TypeVar("OtherPrice", Decimal, Decimal | None)

NANO_USD_PER_USD = 1_000_000_000
_NANO_USD_PER_USD_PER_MTOK = Decimal(1000)  # one dollar per million tokens is 1,000 nano-dollars per token


@dataclass(frozen=True)
class LongPrompts:
    """The prices of a call whose input has more than `above_tokens` tokens. A missing input or output price is that of
    shorter prompts; missing cache, reasoning and batch prices rise in proportion."""

    above_tokens: int
    input_per_mtok: Decimal | None = None
    output_per_mtok: Decimal | None = None
    cached_input_per_mtok: Decimal | None = None
    cache_write_per_mtok: Decimal | None = None


@dataclass(frozen=True)
class Prices:
    """US dollars per million tokens; a missing cache price means the input price, a missing reasoning price the output
    price. `entered_on`: when somebody entered them, or the date of their source."""

    input_per_mtok: Decimal
    output_per_mtok: Decimal
    cached_input_per_mtok: Decimal | None = None
    cache_write_per_mtok: Decimal | None = None
    entered_on: date | None = None
    reasoning_per_mtok: Decimal | None = None
    batch_input_per_mtok: Decimal | None = None
    batch_output_per_mtok: Decimal | None = None
    long_prompts: LongPrompts | None = None

    @property
    def cached(self) -> Decimal:
        return self.input_per_mtok if self.cached_input_per_mtok is None else self.cached_input_per_mtok

    @property
    def written(self) -> Decimal:
        return self.input_per_mtok if self.cache_write_per_mtok is None else self.cache_write_per_mtok

    @property
    def reasoning(self) -> Decimal:
        return self.output_per_mtok if self.reasoning_per_mtok is None else self.reasoning_per_mtok

    def batched(self) -> Prices:
        """The prices of a call that goes through a provider's batch API. Cache and reasoning prices are reduced in the
        proportion of the input and the output price. The full price applies where no batch price is known."""
        into = _ratio(self.batch_input_per_mtok, self.input_per_mtok)
        out = _ratio(self.batch_output_per_mtok, self.output_per_mtok)
        long = self.long_prompts
        return replace(
            self,
            input_per_mtok=_known(self.batch_input_per_mtok, self.input_per_mtok),
            output_per_mtok=_known(self.batch_output_per_mtok, self.output_per_mtok),
            cached_input_per_mtok=_times(self.cached_input_per_mtok, into),
            cache_write_per_mtok=_times(self.cache_write_per_mtok, into),
            reasoning_per_mtok=_times(self.reasoning_per_mtok, out),
            batch_input_per_mtok=None,
            batch_output_per_mtok=None,
            long_prompts=None
            if long is None
            else LongPrompts(
                long.above_tokens,
                _times(long.input_per_mtok, into),
                _times(long.output_per_mtok, out),
                _times(long.cached_input_per_mtok, into),
                _times(long.cache_write_per_mtok, into),
            ),
        )

    def of_prompt(self, input_tokens: int) -> Prices:
        """The prices that apply to a prompt of this length."""
        long = self.long_prompts
        return self if long is None or input_tokens <= long.above_tokens else self._long(long)

    def _long(self, long: LongPrompts) -> Prices:
        into, out = _ratio(long.input_per_mtok, self.input_per_mtok), _ratio(long.output_per_mtok, self.output_per_mtok)
        return replace(
            self,
            input_per_mtok=_known(long.input_per_mtok, self.input_per_mtok),
            output_per_mtok=_known(long.output_per_mtok, self.output_per_mtok),
            cached_input_per_mtok=_known(long.cached_input_per_mtok, _times(self.cached_input_per_mtok, into)),
            cache_write_per_mtok=_known(long.cache_write_per_mtok, _times(self.cache_write_per_mtok, into)),
            reasoning_per_mtok=_times(self.reasoning_per_mtok, out),
            batch_input_per_mtok=_times(self.batch_input_per_mtok, into),
            batch_output_per_mtok=_times(self.batch_output_per_mtok, out),
            long_prompts=None,
        )


FREE = Prices(Decimal(0), Decimal(0))


def nano_usd(usd: Decimal | float) -> int:
    """Dollars to whole nano-dollars, rounded down: a budget is never made larger by rounding."""
    return int(Decimal(str(usd)) * NANO_USD_PER_USD)


def usd(amount_nano_usd: int) -> float:
    return amount_nano_usd / NANO_USD_PER_USD


def cost_nano_usd(usage: TokenUsage, prices: Prices) -> int:
    """The cost of the tokens used, rounded up to a whole nano-dollar."""
    prices = prices.of_prompt(usage.input_tokens)
    plain = max(usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens, 0)
    reasoning = min(usage.reasoning_tokens, usage.output_tokens)
    total = (
        plain * prices.input_per_mtok
        + usage.cached_tokens * prices.cached
        + usage.cache_write_tokens * prices.written
        + (usage.output_tokens - reasoning) * prices.output_per_mtok
        + reasoning * prices.reasoning
    )
    return _ceil(total * _NANO_USD_PER_USD_PER_MTOK)


def cache_saving_nano_usd(usage: TokenUsage, prices: Prices) -> int:
    """How much less the call cost because the provider cached a part of its prompt; negative if writing to the cache cost
    more than reading from it saved."""
    uncached = TokenUsage(usage.input_tokens, usage.output_tokens, reasoning_tokens=usage.reasoning_tokens)
    return cost_nano_usd(uncached, prices) - cost_nano_usd(usage, prices)


def worst_case_nano_usd(prompt_bytes: int, max_output_tokens: int, prices: Prices) -> int:
    """The most a call can cost: no tokenizer makes more tokens than there are bytes, and the output is capped."""
    tiers = (prices, prices.of_prompt(prompt_bytes))  # fewer tokens than bytes may still be a short prompt
    dearest_in = max(price for tier in tiers for price in (tier.input_per_mtok, tier.cached, tier.written))
    dearest_out = max(price for tier in tiers for price in (tier.output_per_mtok, tier.reasoning))
    return _ceil((prompt_bytes * dearest_in + max_output_tokens * dearest_out) * _NANO_USD_PER_USD_PER_MTOK)


def _ratio(special: Decimal | None, usual: Decimal) -> Decimal:
    return Decimal(1) if special is None or not usual else special / usual


def _times(price: Decimal | None, factor: Decimal) -> Decimal | None:
    return None if price is None else price * factor


def _known(price: Decimal | None, other: OtherPrice) -> OtherPrice:
    return other if price is None else price


def _ceil(amount: Decimal) -> int:
    return int(amount.to_integral_value(rounding=ROUND_CEILING))
