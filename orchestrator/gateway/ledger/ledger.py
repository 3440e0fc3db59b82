"""The ledger of all calls, as an interface: what is reserved, what was sent, what came back. `DatabaseLedger` implements it
for the service; tests in virtual time have one in memory.

A row goes `reserved -> sent -> settled`. Rules that every ledger keeps:

* `open` is atomic: of two that open the same key, one gets `Reserved`; the budget is checked in the same transaction.
* A settled row never changes, but for its count of replays. Its answer is given for the same hash only.
* A `failed` row holds no money but what was lost, and may be opened again.
* What a try may have cost although it brought no answer is **lost**: it counts as spent, so that a cap holds whatever
  happens, and it is counted and shown.
* `recover` runs once before the first call. It frees rows that a dead process left `reserved`, and marks those that it
  left `sent` as lost: nobody can know whether they were paid.
* With `reuse_since`, an answer to the same question that another run bought since then is given instead of buying one, at
  no cost. Each is given to a run once: two samples of a problem never get the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestrator.gateway.calls import DayCap, Settlement, Source
from orchestrator.gateway.upstream.credentials import SYSTEM, Payer


class LedgerUnavailable(Exception):
    """The book cannot be read or written now. Nothing was changed; it is worth trying again."""


class CallState(StrEnum):
    """Where a call is."""

    RESERVED = "reserved"  #: money is set aside; nothing was sent
    SENT = "sent"  #: at the provider
    SETTLED = "settled"  #: answered, stored, paid
    FAILED = "failed"  #: given up; may be asked again


@dataclass(frozen=True)
class Opening:
    """A call that asks to be made. No budget means no cap.

    `sent`: it goes out as soon as it is opened, so that it needs no `sent` of its own. `attempt`: only if this is still
    the attempt that carries out the run. `question_key`: the same for all runs that ask the same of the same server.
    """

    run_id: str
    call_key: str
    request_hash: str
    provider: str
    model: str
    worst_nusd: int
    budget_nusd: int | None
    day_caps: tuple[DayCap, ...] = ()
    payer: Payer = SYSTEM
    sent: bool = False
    attempt: int | None = None
    question_key: str | None = None
    reuse_since: datetime | None = None


@dataclass(frozen=True)
class Reserved:
    """The call is the opener's to make."""


@dataclass(frozen=True)
class Stored:
    """The call was made before, or an answer of another run was taken for it."""

    settlement: Settlement
    source: Source = Source.REPLAYED


@dataclass(frozen=True)
class MadeElsewhere:
    """Another process is making the call."""


@dataclass(frozen=True)
class KeyTaken:
    """The key belongs to another request, which was answered or is under way."""


@dataclass(frozen=True)
class NoRoom:
    """The worst case does not fit now. It may later, if `reserved_nusd` of other calls turns out cheaper.

    `cap`: it is a budget of the day, of many runs together, and not that of the run.
    """

    spent_nusd: int
    reserved_nusd: int
    cap: DayCap | None = None


@dataclass(frozen=True)
class NotRunning:
    """The attempt that asks is over, and its token with it."""


Opened = Reserved | Stored | MadeElsewhere | KeyTaken | NoRoom | NotRunning


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

    settled_nusd: int
    lost_nusd: int
    reserved_nusd: int
    lost_sends: int


@dataclass(frozen=True)
class Recovered:
    """What a dead process left behind."""

    unsent: int
    lost: int


class Ledger(Protocol):
    async def recover(self) -> Recovered:
        """What an earlier life of this process left; once, before the first call."""

    async def beat(self) -> Recovered:
        """Say that this process lives, every few seconds, and take over what processes left that no longer do."""

    async def open(self, opening: Opening) -> Opened: ...

    async def sent(self, run_id: str, call_key: str) -> None:
        """A try goes out now."""

    async def refused(self, run_id: str, call_key: str) -> None:
        """The try that was sent cost nothing and another will follow: the call is reserved as before."""

    async def again(self, run_id: str, call_key: str, budget_nusd: int | None, day_caps: tuple[DayCap, ...] = ()) -> bool:
        """The last try may have been billed: count it as lost and reserve anew. False: the budget has no room for that,
        and nothing was changed."""

    async def settle(self, run_id: str, call_key: str, settlement: Settlement) -> None: ...

    async def fail(self, run_id: str, call_key: str, failure: Failure) -> None: ...

    def released(self, run_id: str, call_key: str) -> None:
        """This process does nothing more about the call, whatever the book says: it could not be written, perhaps."""

    async def spending(self, run_id: str) -> Spending: ...
