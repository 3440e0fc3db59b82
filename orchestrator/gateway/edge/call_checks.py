"""Checks whether a run may ask a question, and what it can cost at most. Pure: request parts in, a `Call` or an error
out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from orchestrator.gateway.calls import Call, RunContext, request_hash
from orchestrator.gateway.edge.errors import Code, GatewayError
from orchestrator.gateway.ledger.prices import Prices, worst_case_nano_usd
from orchestrator.gateway.protocols.protocol import CallRequest, Message, Wire
from orchestrator.gateway.provider_batches.lots import Lot, turn_of
from runner.contract.run_spec import CALL_KEY_HEADER

QUESTION_HEADERS = ("anthropic-version", "anthropic-beta")
MAX_KEY_CHARS = 400
PROMPT_OVERHEAD_BYTES = 256


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def parse_body(raw: bytes) -> Message:
    try:
        body = _DECODER.decode(raw.decode(json.detect_encoding(raw), "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise GatewayError(400, Code.VALIDATION_ERROR, "the request body is not JSON") from error
    if not isinstance(body, dict):
        raise GatewayError(400, Code.VALIDATION_ERROR, "the request body must be a JSON object")
    return body


def admit(
    context: RunContext, provider: str, wire: Wire, headers: Mapping[str, str], body: Message, body_bytes: int
) -> Call:
    """Build the call from a request. Header names are in lower case."""
    context = context.asking(headers.get(CALL_KEY_HEADER, ""))
    if provider != context.provider:
        raise GatewayError(403, Code.FORBIDDEN, f"this run may only call provider {context.provider}, not {provider}")
    if context.no_key is not None:
        raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, context.no_key)
    try:
        request = wire.read(body)
    except ValueError as error:
        raise GatewayError(400, Code.VALIDATION_ERROR, str(error)) from error
    if request.model != context.model:
        raise GatewayError(403, Code.FORBIDDEN, f"this run may only call model {context.model}, not {request.model}")
    question = {name: headers[name] for name in QUESTION_HEADERS if name in headers}
    key = _call_key(context, headers)
    terms = context.batch if context.batch is not None and turn_of(key) < context.batch.turns else None
    ordinary_nano_usd = _worst_nano_usd(context, context.prices, request, body_bytes)
    return Call(
        context=context,
        key=key,
        wire=wire,
        request=request,
        body=body,
        request_hash=request_hash(provider, wire.path, body, question),
        worst_nano_usd=ordinary_nano_usd if terms is None else _worst_nano_usd(context, terms.prices, request, body_bytes),
        headers=question,
        lot=None if terms is None else Lot(provider, request.model, wire.protocol, question, context.payer, terms.prices),
        ordinary_worst_nano_usd=ordinary_nano_usd,
    )


def _call_key(context: RunContext, headers: Mapping[str, str]) -> str:
    key = headers.get(CALL_KEY_HEADER, "")
    if not key or len(key) > MAX_KEY_CHARS or not key.isprintable():
        form = f"benchmark/problem/sample/turn, at most {MAX_KEY_CHARS} printable characters"
        raise GatewayError(400, Code.VALIDATION_ERROR, f"every call needs the header {CALL_KEY_HEADER}: {form}")
    if not context.plans(key):
        raise GatewayError(403, Code.FORBIDDEN, f"the plan of this run has no call {key[:200]}")
    return key


def _worst_nano_usd(context: RunContext, prices: Prices | None, question: CallRequest, body_bytes: int) -> int:
    if prices is None:
        if not context.capped:
            return 0
        owner = "of the run" if context.budget_nano_usd is not None else context.day_caps[0].owner
        sentence = f"the budget {owner} cannot be enforced: no price is known for {context.slug}; enter its prices"
        raise GatewayError(402, Code.PRICE_UNKNOWN, sentence)
    if question.max_output_tokens is None:
        if not context.capped:
            return 0
        raise GatewayError(400, Code.VALIDATION_ERROR, "with a budget, each call must give a limit of output tokens")
    tokens = math.ceil(question.max_output_tokens * question.answers * context.over_limit)
    return worst_case_nano_usd(body_bytes + PROMPT_OVERHEAD_BYTES, tokens, prices)
