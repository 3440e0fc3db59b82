"""Reads LiteLLM's `model_prices_and_context_window.json`: bytes in, facts and complaints out. Pure.

The file gives dollars per token. Entries that are not of chat models are passed over; an entry that makes no sense is named
with the reason and left out, and the others are taken.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from orchestrator.errors import Invalid
from orchestrator.prices.entries import Facts

MAX_BYTES = 16 << 20
MAX_ENTRIES = 50_000
MODES = frozenset({"chat", "completion", "responses"})
PROVIDERS = {"together_ai": "together", "fireworks_ai": "fireworks", "text-completion-openai": "openai"}
"""LiteLLM's names of providers that have another name here."""
PER_TOKEN = {
    "input_price": "input_cost_per_token",
    "output_price": "output_cost_per_token",
    "cached_input_price": "cache_read_input_token_cost",
    "cache_write_price": "cache_creation_input_token_cost",
    "reasoning_price": "output_cost_per_reasoning_token",
    "batch_input_price": "input_cost_per_token_batches",
    "batch_output_price": "output_cost_per_token_batches",
}
LONG = ("input_price", "output_price", "cached_input_price", "cache_write_price")
_ABOVE = re.compile(r"_above_(\d+)k_tokens$")


@dataclass
class PriceFile:
    """`left_out`: why, by name. `passed_over`: how many entries are not of chat models."""

    facts: dict[tuple[str, str], Facts] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    passed_over: int = 0


def read_price_file(raw: bytes) -> PriceFile:
    """Raises `Invalid` if it is no such file at all."""
    if len(raw) > MAX_BYTES:
        raise Invalid(f"the list of prices has {len(raw):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        data = json.loads(raw, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the list of prices is not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict) or not data:
        raise Invalid("the list of prices must be a JSON object with one entry per model, as LiteLLM publishes it")
    if len(data) > MAX_ENTRIES:
        raise Invalid(f"the list of prices has {len(data):,} entries; at most {MAX_ENTRIES:,} are read")
    result = PriceFile()
    for name, entry in data.items():
        if name != "sample_spec":
            _read(name, entry, result)
    return result


def _read(name: str, entry: Any, result: PriceFile) -> None:
    try:
        if not isinstance(entry, dict):
            raise ValueError("is not an object")
        if entry.get("mode") not in MODES:
            result.passed_over += 1
            return
        provider = entry.get("litellm_provider")
        if not isinstance(provider, str) or not 0 < len(provider) <= 100:
            raise ValueError("litellm_provider is missing")
        key = PROVIDERS.get(provider, provider), name.removeprefix(f"{provider}/")
        if not 0 < len(key[1]) <= 200 or not key[1].isprintable():
            raise ValueError("its name is empty, longer than 200 characters or not printable")
        result.facts[key] = _facts(entry)
    except ValidationError as error:
        first = error.errors()[0]
        result.left_out[name[:200]] = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except ValueError as error:
        result.left_out[name[:200]] = str(error)


def _facts(entry: dict[str, Any]) -> Facts:
    values: dict[str, Any] = {ours: _per_million(entry, theirs) for ours, theirs in PER_TOKEN.items()}
    for needed in ("input_price", "output_price"):
        if values[needed] is None:
            raise ValueError(f"{PER_TOKEN[needed]} is missing")
    above = {int(found[1]) for key in entry if (found := _ABOVE.search(key)) and entry[key] is not None}
    if len(above) > 1:
        raise ValueError("has prices above several lengths of a prompt; only one is understood")
    for thousands in above:
        suffix = f"_above_{thousands}k_tokens"
        values["long_prompt_prices"] = {
            "above_tokens": thousands * 1000,
            **{ours: _per_million(entry, PER_TOKEN[ours] + suffix) for ours in LONG},
        }
    context = entry.get("max_input_tokens") or entry.get("max_tokens")
    values["context_tokens"] = context if isinstance(context, int) and not isinstance(context, bool) else None
    return Facts.model_validate(values)


def _per_million(entry: dict[str, Any], name: str) -> float | None:
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(f"{name} is not a number")
    try:
        return float(Decimal(value) * 1_000_000)
    except ArithmeticError as error:
        raise ValueError(f"{name} is not a usable number") from error
