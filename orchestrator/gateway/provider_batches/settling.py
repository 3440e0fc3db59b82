"""Stores the results of a part: answers into the ledger, a few hundred in one transaction, each once.

A call whose answer is stored is no longer part of its batch, so results that are read again after a crash change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from orchestrator.gateway.calls import Settlement
from orchestrator.gateway.edge.router import WIRES
from orchestrator.gateway.ledger import spending_queries
from orchestrator.gateway.ledger.database import settle_within
from orchestrator.gateway.ledger.prices import FREE, cost_nano_usd, usd
from orchestrator.gateway.protocols.protocol import BadStream, Message, StreamedError, TokenUsage
from orchestrator.gateway.provider_batches import queries
from orchestrator.gateway.provider_batches.lots import Lot, position_of
from orchestrator.gateway.provider_batches.port import CallOutcome
from orchestrator.gateway.provider_batches.queries import PlacedCall
from orchestrator.gateway.provider_batches.tables import BatchPart
from orchestrator.gateway.upstream.secrets.scrubbing import clean_answer, storable

_WIRES = {wire.protocol: wire for wire in WIRES}


def settle(
    session: Session,
    part: BatchPart,
    outcomes: Sequence[CallOutcome],
    secrets: tuple[str, ...],
    now: datetime,
    most_tries: int,
) -> None:
    """Store some results. A call without an answer is collected again until it was in `most_tries` batches."""
    lot = Lot.of(part.lot)
    by_position = {at: outcome for outcome in outcomes if (at := position_of(part.id, outcome.custom_id)) is not None}
    for call in queries.placed(session, part.id, list(by_position)):
        outcome = by_position[call.position]
        message, why = _checked(lot, outcome)
        if message is not None:
            settlement = _settlement(lot, call, clean_answer(message, secrets), (now - part.created_at).total_seconds())
            settle_within(session.connection(), call.run_id, call.call_key, settlement, now)
            queries.forget(session.connection(), call)
        else:
            no_answer(session, call, why, most_tries if outcome.again else 0)


def settle_rest(session: Session, part: BatchPart, why: str, most_tries: int, lost_at: datetime | None = None) -> int:
    """End the calls that no result named; returns how many there were. With `lost_at`, they may have been billed."""
    rest = queries.placed(session, part.id)
    for call in rest:
        if lost_at is not None:
            worst_usd = usd(call.worst_nano_usd)
            spending_queries.record_loss(session.connection(), call.run_id, call.call_key, worst_usd, why, lost_at)
        no_answer(session, call, why, most_tries)
    return len(rest)


def no_answer(session: Session, call: PlacedCall, why: str, most_tries: int) -> None:
    if call.tries + 1 < most_tries:
        queries.collect_again(session, call)
    else:
        queries.leave_unanswered(session, call, storable(why))


def _checked(lot: Lot, outcome: CallOutcome) -> tuple[Message | None, str]:
    if outcome.message is None:
        return None, outcome.error
    try:
        _WIRES[lot.protocol].check(outcome.message)
    except (BadStream, StreamedError) as error:
        return None, str(error)
    return outcome.message, ""


def _settlement(lot: Lot, call: PlacedCall, message: Message, waited_s: float) -> Settlement:
    wire = _WIRES[lot.protocol]
    usage = wire.usage(message) or TokenUsage(
        input_tokens=call.size_bytes // 4, output_tokens=len(str(message)) // 4, estimated=True
    )
    return Settlement(
        protocol=wire.protocol,
        message=message,
        usage=usage,
        finish=wire.finish(message),
        cost_nano_usd=cost_nano_usd(usage, lot.prices or FREE),
        tries=call.tries + 1,
        queue_s=max(waited_s, 0.0),
        provider_s=0.0,
        priced=lot.prices is not None,
    )
