"""Parameters of a run and of its model, and the token limit that follows from them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.models.tables import LlmModel
from orchestrator.runs.queueing.model_specs import max_tokens_of, model_spec_of, params_of


def a_model(name: str = "m", **params: Any) -> LlmModel:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return LlmModel(
        id=1, slug="m", provider="lab", name=name, protocol="openai_chat", params=params, created_at=now, updated_at=now
    )


def test_what_the_run_gives_wins_and_null_takes_away() -> None:
    model = a_model(temperature=0.5, seed=1, extra_body={"min_p": 0.1, "a": 1})
    of_run = {"seed": 2, "temperature": None, "extra_body": {"a": 2}}
    assert params_of(model, of_run) == {"seed": 2, "extra_body": {"min_p": 0.1, "a": 2}}
    spec = model_spec_of(model, of_run)
    assert (spec.seed, spec.temperature, spec.extra_body) == (2, None, {"min_p": 0.1, "a": 2})
    assert model.params["seed"] == 1


@pytest.mark.parametrize(
    ("name", "params", "limit"),
    [
        ("gpt-4o", {}, 8192),
        ("gpt-4o", {"max_tokens": 5}, 5),
        ("gpt-5-mini", {}, 32_768),
        ("o3", {}, 32_768),
        ("o3-mini", {"max_tokens": 100}, 100),
        ("foo3", {}, 8192),
        ("deepseek-reasoner", {}, 32_768),
        ("deepseek-ai/DeepSeek-R1", {}, 32_768),
        ("claude", {"thinking_budget": 60_000}, 68_192),
        ("claude", {"effort": "high"}, 32_768),
        ("gpt-5", {"effort": "none"}, 8192),
        ("qwen3-32b", {"thinking": True}, 32_768),
        ("qwen3-235b-thinking-2507", {"thinking": False}, 8192),
    ],
)
def test_reasoning_models_get_more_tokens_unless_told_otherwise(name: str, params: dict[str, Any], limit: int) -> None:
    assert max_tokens_of(a_model(name, **params)) == limit
    assert max_tokens_of(a_model(name), params) == limit
    assert model_spec_of(a_model(name, **params)).max_tokens == limit
