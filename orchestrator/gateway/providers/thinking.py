"""Writes the switch for thinking as a kind of server has it. Pure."""

from __future__ import annotations

from orchestrator.gateway.protocols.protocol import Message
from orchestrator.gateway.upstream.kinds.table import Thinking
from runner.contract.run_spec import THINKING_FIELD

LEAST_BUDGET = 1024
"""The smallest that Claude accepts."""


def with_thinking(body: Message, way: Thinking) -> Message:
    """A field that the run sets itself is left alone."""
    body = dict(body)
    on = body.pop(THINKING_FIELD, None)
    if not isinstance(on, bool):
        return body
    match way:
        case Thinking.TEMPLATE:
            given = body.get("chat_template_kwargs")
            body["chat_template_kwargs"] = {"enable_thinking": on, **(given if isinstance(given, dict) else {})}
        case Thinking.OBJECT:
            body.setdefault("thinking", {"type": "enabled" if on else "disabled"})
        case Thinking.REASONING:
            body.setdefault("reasoning", {"enabled": on})
        case Thinking.EFFORT:
            if not on:
                body.setdefault("reasoning_effort", "none")
        case Thinking.BUDGET:
            limit = body.get("max_tokens")
            budget = max(LEAST_BUDGET, limit // 2 if isinstance(limit, int) else 0)
            body.setdefault("thinking", {"type": "enabled", "budget_tokens": budget} if on else {"type": "disabled"})
    return body
