"""Request and response bodies of models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any, Self

from pydantic import Field, StrictBool, StrictInt, field_validator

from orchestrator.http.schemas import Answer, Body, Number, Text
from orchestrator.models.tables import LlmModel
from orchestrator.prices.age import age_warning
from runner.contract.run_spec import Protocol

OURS = frozenset({"model", "messages", "input", "instructions", "system", "n", "stream", "stream_options", "store", "tools"})
"""Fields of a request that an `extra_body` cannot change."""
EXTRA_BODY_CHARS = 16_384
SLUG = r"^[a-z0-9][a-z0-9._:/-]{0,198}$"


class AnswerParams(Body):
    """How a model is asked. What is not given is left to the server."""

    max_tokens: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = None
    top_p: Annotated[Number, Field(gt=0, le=1)] | None = None
    top_k: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = None
    seed: Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: Annotated[list[Annotated[Text, Field(min_length=1, max_length=200)]], Field(max_length=16)] | None = None
    system_prompt: Annotated[Text, Field(max_length=20_000)] | None = None
    thinking_budget: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = None
    effort: Annotated[Text, Field(max_length=20)] | None = None
    thinking: StrictBool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    extra_body: dict[str, Any] | None = None

    @field_validator("chat_template_kwargs")
    @classmethod
    def _not_too_long(cls, arguments: dict[str, Any] | None) -> dict[str, Any] | None:
        if arguments is not None and len(json.dumps(arguments)) > EXTRA_BODY_CHARS:
            raise ValueError(f"is longer than {EXTRA_BODY_CHARS:,} characters")
        return arguments

    @field_validator("extra_body")
    @classmethod
    def _leaves_ours_alone(cls, extra: dict[str, Any] | None) -> dict[str, Any] | None:
        if ours := sorted(OURS & set(extra or ())):
            raise ValueError(f"{ours[0]} is set by Benchyard; leave it out")
        if extra is not None and len(json.dumps(extra)) > EXTRA_BODY_CHARS:
            raise ValueError(f"is longer than {EXTRA_BODY_CHARS:,} characters")
        return extra


class ModelParams(AnswerParams):
    request_timeout_s: Annotated[Number, Field(gt=0, le=7200)] | None = None


Price = Annotated[Number, Field(ge=0, le=1e6, description="US dollars per million tokens.")]


class LongPromptPrices(Body):
    """The prices of calls whose input is longer than `above_tokens`. Omitted cache prices rise with the input price."""

    above_tokens: Annotated[StrictInt, Field(ge=1, le=100_000_000)]
    input_price: Price | None = None
    output_price: Price | None = None
    cached_input_price: Price | None = None
    cache_write_price: Price | None = None


ContextTokens = Annotated[StrictInt, Field(ge=1, le=100_000_000, description="The longest prompt and answer together.")]


class ModelCreate(Body):
    slug: Annotated[Text, Field(pattern=SLUG)]
    provider: Annotated[Text, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,98}$")]
    name: Annotated[Text, Field(min_length=1, max_length=200)]
    display_name: Annotated[Text, Field(max_length=200)] = ""
    protocol: Protocol | None = None
    params: ModelParams = ModelParams()
    input_price: Price | None = None
    output_price: Price | None = None
    cached_input_price: Price | None = None
    cache_write_price: Price | None = None
    reasoning_price: Price | None = None
    batch_input_price: Price | None = None
    batch_output_price: Price | None = None
    long_prompt_prices: LongPromptPrices | None = None
    context_tokens: ContextTokens | None = None
    training_cutoff: date | None = None

    def values(self) -> dict[str, Any]:
        """The arguments for the catalogue."""
        long = self.long_prompt_prices
        return {
            **self.model_dump(exclude={"params"}),
            "params": self.params.model_dump(exclude_none=True),
            "long_prompt_prices": None if long is None else long.model_dump(exclude_none=True),
        }


class ModelPatch(Body):
    """Omitted fields stay unchanged."""

    name: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    display_name: Annotated[Text, Field(max_length=200)] | None = None
    protocol: Protocol | None = None
    params: ModelParams | None = None
    input_price: Price | None = None
    output_price: Price | None = None
    cached_input_price: Price | None = None
    cache_write_price: Price | None = None
    reasoning_price: Price | None = None
    batch_input_price: Price | None = None
    batch_output_price: Price | None = None
    long_prompt_prices: LongPromptPrices | None = None
    context_tokens: ContextTokens | None = None
    training_cutoff: date | None = None

    def values(self) -> dict[str, Any]:
        """The changed fields; null is valid only for prices and the cut-off."""
        fields: dict[str, Any] = self.model_dump(exclude_unset=True)
        if fields.get("params") is not None:
            fields["params"] = {key: value for key, value in fields["params"].items() if value is not None}
        if self.long_prompt_prices is not None:
            fields["long_prompt_prices"] = self.long_prompt_prices.model_dump(exclude_none=True)
        always = ("name", "display_name", "protocol", "params")
        return {name: value for name, value in fields.items() if value is not None or name not in always}


class ModelOut(Answer):
    id: int
    slug: str
    provider: str
    name: str
    display_name: str
    protocol: str
    params: dict[str, Any]
    input_price: float | None
    output_price: float | None
    cached_input_price: float | None
    cache_write_price: float | None
    reasoning_price: float | None
    batch_input_price: float | None
    batch_output_price: float | None
    long_prompt_prices: LongPromptPrices | None
    prices_entered_at: datetime | None = Field(description="When they were entered, or the date of their source.")
    price_source: str | None = Field(description="Where the prices are from; null: somebody entered them here.")
    price_warning: str | None = Field(description="Says so if the prices are older than 90 days.")
    context_tokens: int | None
    training_cutoff: date | None
    missing_since: datetime | None
    archived: bool
    created_at: datetime
    updated_at: datetime
    notes: list[str] = Field(
        default=[],
        description="What was learned about its server since the service started, such as a parameter that it refuses.",
    )

    @classmethod
    def of(cls, row: LlmModel, now: datetime, notes: Sequence[str] = ()) -> Self:
        computed = ("archived", "notes", "price_warning", "long_prompt_prices")
        values = {name: getattr(row, name) for name in cls.model_fields if name not in computed}
        long = row.long_prompt_prices
        return cls(
            **values,
            long_prompt_prices=None if long is None else LongPromptPrices(**long),
            price_warning=age_warning(row.prices_entered_at, now, free=row.is_free),
            archived=row.archived_at is not None,
            notes=list(notes),
        )


class ModelsSynced(Answer):
    """Slugs by change; `failed` has the reason per provider."""

    providers: list[str]
    added: list[str]
    returned: list[str]
    missing: list[str]
    failed: dict[str, str]
