"""What the calls of one part have in common, and how far a part is. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum

from pydantic import TypeAdapter

from orchestrator.gateway.ledger.prices import Prices
from orchestrator.gateway.upstream.secrets.credentials import Payer
from runner.contract.run_spec import Protocol


class CallWait(StrEnum):
    """How far a call is."""

    COLLECTED = "collected"  #: its run asked for it; no part has it yet
    PLACED = "placed"  #: a part has it
    UNANSWERED = "unanswered"  #: its part ended without an answer


class PartState(StrEnum):
    """How far a part is."""

    PREPARED = "prepared"  #: its calls are chosen; the provider has no batch of it
    SUBMITTING = "submitting"  #: the request for the batch may have been sent, and its answer is not known
    SUBMITTED = "submitted"  #: the provider works on it
    ENDED = "ended"  #: every call of it is settled, collected again or unanswered


OPEN = (PartState.PREPARED, PartState.SUBMITTING, PartState.SUBMITTED)


@dataclass(frozen=True)
class BatchTerms:
    """How a run uses batches. `prices` are those of calls in a batch; `ordinary_next`: a call without an answer is made in
    the ordinary way."""

    prices: Prices | None
    turns: int
    ordinary_next: bool


@dataclass(frozen=True)
class Lot:
    """Calls with the same lot may share a batch: the same model of a provider, asked with the same headers and key, at the
    same prices."""

    provider: str
    model: str
    protocol: Protocol
    headers: Mapping[str, str] = field(default_factory=dict)
    payer: Payer = field(default_factory=Payer)
    prices: Prices | None = None

    def text(self) -> str:
        return _LOT.dump_json(replace(self, headers=dict(sorted(self.headers.items())))).decode()

    @classmethod
    def of(cls, text: str) -> Lot:
        return _LOT.validate_json(text)


_LOT = TypeAdapter(Lot)


def at_batch_prices(prices: Prices | None, share: Decimal) -> Prices | None:
    """The prices of calls in a batch: those known for the model, else this share of its usual ones."""
    if prices is None:
        return None
    into, out = prices.batch_input_per_mtok, prices.batch_output_per_mtok
    return replace(
        prices,
        batch_input_per_mtok=prices.input_per_mtok * share if into is None else into,
        batch_output_per_mtok=prices.output_per_mtok * share if out is None else out,
    ).batched()


def custom_id(part_id: str, position: int) -> str:
    """The name of a call within a batch: at most 64 letters, digits, hyphens and underscores, which all providers take."""
    return f"{part_id}-{position}"


def position_of(part_id: str, name: object) -> int | None:
    """The position of a call by its name; None if the name is of another part."""
    if not isinstance(name, str) or not name.startswith(f"{part_id}-"):
        return None
    number = name[len(part_id) + 1 :]
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else None


def turn_of(call_key: str) -> int:
    """The turn in `benchmark/problem/sample/turn`; 0 for the calls of a judge."""
    turn = call_key.rpartition("/")[2]
    return int(turn) if turn.isascii() and turn.isdecimal() and len(turn) < 10 else 0


@dataclass(frozen=True)
class PartProgress:
    submitted: bool
    calls: int
    back: int
    left_s: float | None


WAITING = "the provider's batch"


def sentence(parts: list[PartProgress]) -> str:
    """How far the parts of a run are, for people: what is back, and when the rest comes at the latest."""
    calls, back = sum(part.calls for part in parts), sum(part.back for part in parts)
    if not all(part.submitted for part in parts):
        return f"{WAITING}: {calls} calls are being submitted" + (f", {back} back" if back else "")
    left = max((part.left_s for part in parts if part.left_s is not None), default=None)
    return f"{WAITING}: submitted, {back} of {calls} back" + (
        "" if left is None else f", at the latest in {_in_words(left)}"
    )


def _in_words(seconds: float) -> str:
    minutes = max(round(seconds / 60), 1)
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
