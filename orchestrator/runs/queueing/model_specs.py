"""A model of the catalogue as runners are told it: with the model's parameters, and those of the run, which win."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from orchestrator.models.tables import LlmModel
from runner.contract.run_spec import ModelSpec, Protocol

DEFAULT_MAX_TOKENS = int(ModelSpec.model_fields["max_tokens"].default)
REASONING_MAX_TOKENS = 32_768
"""Reasoning counts towards the limit: with the usual one, many answers would end before they begin."""
ANSWER_TOKENS = 8192
"""What is left for the answer beside a budget for thinking."""
_REASONS = re.compile(
    r"(^|[/._-])(o[1-9](-|$)|gpt-(5|6|oss)|deepseek-(reasoner|r\d)|r1(-|$)|qwq|qwen3.*thinking|magistral|.*reasoning|.*thinking)",
    re.IGNORECASE,
)
_MERGED = ("extra_body", "chat_template_kwargs")


def params_of(model: LlmModel, of_run: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The parameters of a model in a run. What the run gives wins; null takes the model's value away. Objects are merged by
    their fields."""
    params = dict(model.params)
    for name, value in (of_run or {}).items():
        if value is None:
            params.pop(name, None)
        else:
            params[name] = {**params.get(name, {}), **value} if name in _MERGED else value
    return params


def max_tokens_of(model: LlmModel, of_run: Mapping[str, Any] | None = None) -> int:
    """The token limit of each answer."""
    params = params_of(model, of_run)
    if params.get("max_tokens"):
        return int(params["max_tokens"])
    if params.get("thinking") is False or params.get("effort") == "none":
        return DEFAULT_MAX_TOKENS
    if budget := params.get("thinking_budget"):
        return max(REASONING_MAX_TOKENS, int(budget) + ANSWER_TOKENS)
    reasons = params.get("thinking") or params.get("effort") or _REASONS.search(model.name)
    return REASONING_MAX_TOKENS if reasons else DEFAULT_MAX_TOKENS


def model_spec_of(model: LlmModel, of_run: Mapping[str, Any] | None = None) -> ModelSpec:
    params = {key: value for key, value in params_of(model, of_run).items() if key in ModelSpec.model_fields}
    return ModelSpec.model_validate(
        {
            **params,
            "max_tokens": max_tokens_of(model, of_run),
            "slug": model.slug,
            "provider": model.provider,
            "name": model.name,
            "protocol": Protocol(model.protocol),
        }
    )
