"""The ledger of all model calls, as an interface. `DatabaseLedger` implements it for the service; tests in virtual time use
one in memory.

A row goes `reserved -> sent -> settled`, or `batched -> settled` if a batch of the provider answers it.
Rules that every ledger keeps:

* `open` is atomic: if two callers open the same key, one gets `Reservation`; the budget is checked in the same transaction.
* A settled row never changes, except for its count of replays. Its answer is returned only for the same request hash.
* A `failed` row holds no money except what was lost, and may be opened again.
* What a try may have cost although it returned no answer is **lost**: it counts as spent, so that a cap holds whatever
  happens, and it is counted and shown.
* `recover` runs once before the first call. It frees rows that a dead process left `reserved`, and marks those it left
  `sent` as lost: nobody can know whether they were billed.
* With `reuse_since`, an answer that another run bought since then to the same question is reused at no cost. A run uses each
  answer once: two samples of a problem never share one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestrator.gateway.calls import DayCap, Settlement, Source
from orchestrator.gateway.upstream.secrets.credentials import SYSTEM, Payer


class LedgerUnavailable(Exception):
    """The ledger cannot be read or written now. Nothing was changed; try again."""


class CallState(StrEnum):
    RESERVED = "reserved"  #: money is set aside; nothing was sent
    SENT = "sent"  #: at the provider
    BATCHED = "batched"  #: waits for a batch of the provider; money is set aside
    SETTLED = "settled"  #: answered, stored, paid
    FAILED = "failed"  #: given up; may be opened again


@dataclass(frozen=True)
class BatchedRequest:
    """The request of a call that is to be answered in a batch; calls with the same `lot` may share one. `body` is JSON."""

    lot: str
    body: bytes


@dataclass(frozen=True)
class Opening:
    """A request to open a call. No budget means no cap.

    `sent`: the call goes out as soon as it is opened, so no separate `sent` is needed. `attempt`: open only if this is still
    the run's current attempt. `question_key`: the same for all runs that ask the same question of the same server.
    `judge_model_id`: the model asked, if it judges the run's answers; its spending is booked under its own name.
    `batched`: the call is not made now, but collected for a batch.
    """

    run_id: str
    call_key: str
    request_hash: str
    provider: str
    model: str
    worst_nano_usd: int
    budget_nano_usd: int | None
    day_caps: tuple[DayCap, ...] = ()
    payer: Payer = SYSTEM
    sent: bool = False
    attempt: int | None = None
    question_key: str | None = None
    reuse_since: datetime | None = None
    judge_model_id: int | None = None
    batched: BatchedRequest | None = None


@dataclass(frozen=True)
class Reservation:
    """The opener must now make the call."""


@dataclass(frozen=True)
class Stored:
    """The call has an answer: made before, or reused from another run."""

    settlement: Settlement
    source: Source = Source.REPLAYED


@dataclass(frozen=True)
class MadeElsewhere:
    """Another process is making the call."""


@dataclass(frozen=True)
class KeyConflict:
    """The key belongs to another request, which was answered or is in flight."""


@dataclass(frozen=True)
class NoRoom:
    """The worst case does not fit now. It may fit later, if other calls cost less than their `reserved_nano_usd`.

    `cap` is set if a daily limit shared by many runs was reached, not the run's own budget. `batched_nano_usd` is what
    this run has reserved for calls in batches.
    """

    spent_nano_usd: int
    reserved_nano_usd: int
    cap: DayCap | None = None
    batched_nano_usd: int = 0


@dataclass(frozen=True)
class NotRunning:
    """The attempt that asks has ended, so its token is no longer valid."""


@dataclass(frozen=True)
class Collected:
    """The call waits for a batch."""


@dataclass(frozen=True)
class Unanswered:
    """The call was in a batch that brought no answer to it; `error` says why."""

    error: str


Opened = Reservation | Stored | MadeElsewhere | KeyConflict | NoRoom | NotRunning | Collected | Unanswered


@dataclass(frozen=True)
class Failure:
    """How a call ended without an answer; `lost`: its last try may have been billed."""

    error: str
    lost: bool
    queue_s: float
    provider_s: float


@dataclass(frozen=True)
class Spending:
    """The money of one run."""

    settled_nano_usd: int
    lost_nano_usd: int
    reserved_nano_usd: int
    lost_sends: int


@dataclass(frozen=True)
class Recovery:
    """What a dead process left behind."""

    unsent: int
    lost: int


class Ledger(Protocol):
    async def recover(self) -> Recovery:
        """Clean up what this process left behind before a restart; once, before the first call."""

    async def beat(self) -> Recovery:
        """Report that this process is alive, every few seconds, and take over the calls of processes that are not."""

    async def open(self, opening: Opening) -> Opened: ...

    async def sent(self, run_id: str, call_key: str) -> None:
        """Record that a try goes out now."""

    async def refused(self, run_id: str, call_key: str) -> None:
        """The try cost nothing and another will follow: the call is reserved again."""

    async def again(
        self, run_id: str, call_key: str, budget_nano_usd: int | None, day_caps: tuple[DayCap, ...] = ()
    ) -> bool:
        """The last try may have been billed: count it as lost and reserve again. Returns False, changing nothing, if the
        budget has no room for that."""

    async def settle(self, run_id: str, call_key: str, settlement: Settlement) -> None: ...

    async def fail(self, run_id: str, call_key: str, failure: Failure) -> None: ...

    def released(self, run_id: str, call_key: str) -> None:
        """This process is done with the call, whatever the ledger says; the last write may have failed."""

    async def spending(self, run_id: str) -> Spending: ...
