"""Whether a provider's error concerns one question or every call of the run. Pure.

Providers and compatible servers express it by status, error code, type or parameter; LiteLLM, vLLM and llama-server often
only by a sentence. Anything else is `UNKNOWN`, and the runner counts how many come in a row. Signs of a single question are
checked first: stopping a run over one long prompt would be worse than a few calls more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runner.contract.run_spec import ErrorScope

RUN_STATUSES = frozenset({401, 402, 403, 404, 405, 407, 410, 426, 501})
ITEM_STATUSES = frozenset({413, 414, 451})

ITEM_WORDS = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "contentpolicyviolationerror",
        "context_length_exceeded",
        "contextwindowexceedederror",
        "exceed_context_size_error",
        "invalid_prompt",
        "moderation_blocked",
        "request_too_large",
        "responsibleaipolicyviolation",
        "string_above_max_length",
    }
)
"""Codes and types that concern one question."""
RUN_WORDS = frozenset(
    {
        "authentication_error",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "budget_exceeded",
        "insufficient_quota",
        "invalid_api_key",
        "invalid_model",
        "key_model_access_denied",
        "missing_required_parameter",
        "model_not_found",
        "not_found_error",
        "not_supported_error",
        "notfounderror",
        "permission_error",
        "unknown_parameter",
        "unknown_url",
        "unsupported_country_region_territory",
        "unsupported_model",
        "unsupported_parameter",
        "unsupported_value",
        "unsupportedparamserror",
    }
)
"""Codes and types that concern key, model or parameters, which are the same in every call of a run."""
FIXED_PARAMETERS = (
    "model",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "budget_tokens",
    "output_config",
    "effort",
    "instructions",
    "store",
    "stream",
    "stream_options",
)
"""Parameters that have the same value in every call of a run."""

_ITEM_TEXT = re.compile(
    r"context[ _-]?(length|window|size|limit)|maximum context|exceeds? the (available )?context|prompt (is )?too long"
    r"|(input|request|prompt|message)s? (is |are )?(too (long|large)|exceeds?)|too many (input )?tokens"
    r"|content[ _-]?(policy|filter|management|moderation)|safety (system|policy|filter)|responsible ?ai"
    r"|flagged|moderation|usage polic(y|ies)|violat(es|ing|ion)",
    re.IGNORECASE,
)
_FIXED = "|".join(name for name in FIXED_PARAMETERS if name not in ("model", "store", "stream", "effort", "reasoning"))
_RUN_TEXT = re.compile(
    r"\bmodel\b.{0,160}\b(does not exist|doesn't exist|do not have access|not found|unknown|decommissioned|deprecated"
    r"|is not (supported|available|valid|allowed))"
    r"|(invalid|unknown|unsupported|no such|not a valid) model|llm provider not provided|model .{0,80}not exist"
    r"|(unsupported|unrecognized|unrecognised|unknown|unexpected|invalid) (request )?(param|argument|keyword|field|value)"
    r"|does not support (the )?(following )?(param|argument|this)|not supported (with|by|for) (this|the) model"
    r"|extra_forbidden|extra inputs are not permitted"
    r"|(invalid|incorrect|missing|expired|no) (proxy )?(server )?(api[ -]?key|token|credentials?)|unauthori[sz]ed"
    r"|credit balance|budget has been exceeded|quota"
    rf"|\b({_FIXED})\b",
    re.IGNORECASE,
)
_OUTPUT_BEYOND_CONTEXT = re.compile(
    r"max_(?:completion_)?tokens\D{0,60}?(\d+)\D.*?maximum context length is (\d+)", re.IGNORECASE | re.DOTALL
)


def scope_of(status: int, error: Mapping[str, Any]) -> ErrorScope:
    """The scope of a provider's error, from its status and error object."""
    text = str(error.get("message") or "")
    words = {word for name in ("code", "type") if (word := str(error.get(name) or "").lower())}
    inner = error.get("innererror")
    if isinstance(inner, Mapping):
        words.add(str(inner.get("code") or "").lower())
    if (beyond := _OUTPUT_BEYOND_CONTEXT.search(text)) and int(beyond[1]) >= int(beyond[2]):
        return ErrorScope.RUN  # the requested answer alone exceeds the limit for prompt and answer together
    if words & ITEM_WORDS or status in ITEM_STATUSES:
        return ErrorScope.ITEM
    if words & RUN_WORDS and not (status == 403 and _ITEM_TEXT.search(text)):
        return ErrorScope.RUN
    if status in (400, 403, 422) and _ITEM_TEXT.search(text):
        return ErrorScope.ITEM
    if status in RUN_STATUSES or _is_fixed(error.get("param")):
        return ErrorScope.RUN
    if 400 <= status < 500 and status not in (408, 409, 425, 429) and _RUN_TEXT.search(text):
        return ErrorScope.RUN
    return ErrorScope.UNKNOWN


def _is_fixed(param: object) -> bool:
    return isinstance(param, str) and re.split(r"[.\[]", param)[0] in FIXED_PARAMETERS
