"""A model call as a span, with the attributes of OpenTelemetry's conventions for generative AI. No prompt, no answer, no
key and no text of a provider is in it. Pure."""

from __future__ import annotations

from datetime import datetime

from orchestrator.gateway.calls import Call, Settlement
from orchestrator.gateway.ledger.prices import usd
from orchestrator.system.telemetry import Attribute, SpanRecord, span_of, trace_of_run


def call_span(
    call: Call, began: datetime, ended: datetime, settlement: Settlement | None, error: str | None = None
) -> SpanRecord:
    context = call.context
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": context.provider,
        "gen_ai.request.model": context.model,
        "benchyard.run.id": context.run_id,
        "benchyard.attempt": context.attempt,
        "benchyard.call.key": call.key,
    }
    if call.request.max_output_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = call.request.max_output_tokens
    if settlement is not None:
        usage = settlement.usage
        attributes |= {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "gen_ai.response.finish_reasons": (settlement.finish.value,),
            "benchyard.call.tries": settlement.tries,
            "benchyard.call.queue_seconds": settlement.queue_s,
            "benchyard.call.provider_seconds": settlement.provider_s,
        }
        if settlement.priced:
            attributes["benchyard.call.cost_usd"] = usd(settlement.cost_nano_usd)
    if error is not None:
        attributes["error.type"] = error
    return SpanRecord(
        name=f"chat {context.model}",
        trace_id=trace_of_run(context.run_id),
        span_id=span_of(context.run_id, "call", context.attempt, call.key, began.timestamp()),
        parent_id=span_of(context.run_id, "attempt", context.attempt),
        started_at=began,
        ended_at=ended,
        kind="client",
        attributes=attributes,
        error=error,
    )
