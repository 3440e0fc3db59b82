"""The facts of a model call, as the orchestrator is told them."""

from runner.contract.events import CallFacts
from runner.llm.client import Completion


def call_facts(completion: Completion, call_key: str) -> CallFacts:
    return CallFacts(
        call_key=call_key,
        input_tokens=_count(completion.input_tokens),
        output_tokens=_count(completion.output_tokens),
        reasoning_tokens=_count(completion.reasoning_tokens),
        cached_tokens=_count(completion.cached_tokens),
        latency_s=max(completion.latency_s, 0.0),
        finish_reason=completion.finish.value,
        replayed=completion.replayed,
    )


def _count(tokens: int) -> int:
    """Bounds a token count: a provider may report any number, the contract allows a range."""
    return min(max(tokens, 0), (1 << 53) - 1)
