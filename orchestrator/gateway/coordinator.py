"""The desk that every call comes to: answers from the book what is in the book, joins askers of the same call, and
carries each call to its end in a task of its own, whether or not the asker stays on the line.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import structlog

from orchestrator.gateway.calls import Answered, Call, Source, question_key
from orchestrator.gateway.edge.errors import Code, GatewayError
from orchestrator.gateway.ledger.ledger import (
    KeyTaken,
    Ledger,
    LedgerUnavailable,
    MadeElsewhere,
    NoRoom,
    NotRunning,
    Opening,
    Reserved,
    Stored,
)
from orchestrator.gateway.ledger.prices import usd
from orchestrator.gateway.pacing.wait_reasons import WaitBoard
from orchestrator.gateway.sender import Sender

POLL_S = 0.5
"""How often the book is asked again about what another process does."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Flight:
    """A call under way, in a task of its own."""

    request_hash: str
    attempt: int
    task: asyncio.Task[Answered]


class AttemptOver(GatewayError):
    """The attempt ended between its request and its call."""

    def __init__(self) -> None:
        super().__init__(401, Code.UNAUTHORIZED, "the key must be the token of a run that is running")


class CallDesk:
    def __init__(self, *, ledger: Ledger, sender: Sender, board: WaitBoard) -> None:
        self._ledger = ledger
        self._sender = sender
        self._board = board
        self._flights: dict[tuple[str, str], Flight] = {}
        self._landed = asyncio.Event()
        self._closing = False

    async def answer(self, call: Call) -> Answered:
        """The answer to a call: stored, joined or bought. The call goes on if the caller is cancelled."""
        answered = await self.ask(call).within(None)
        assert answered is not None
        return answered

    def ask(self, call: Call) -> Asking:
        """Have a call carried out, or join the one that is under way."""
        return Asking(self, call)

    def flight_of(self, call: Call) -> tuple[Flight, bool]:
        """What brings the answer, and whether somebody else has asked for it."""
        flight = self._flights.get(call.flight)
        if flight is None:
            return self._take_off(call), False
        if flight.request_hash != call.request_hash:
            raise _key_taken(call)
        return flight, True

    def status(self, run_id: str) -> str | None:
        """What the run waits for, in one sentence; None while nothing holds it up."""
        return self._board.status(run_id)

    def in_flight(self, run_id: str | None = None) -> int:
        return sum(1 for run, _ in self._flights if run_id in (None, run))

    async def abandon(self, run_id: str) -> None:
        """Give up the calls of a run that ended, except those at the provider, which are carried to their end."""
        tasks = [flight.task for (run, key), flight in self._flights.items() if run == run_id and not self._sent(run, key)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self, grace_s: float) -> None:
        """Take no more calls, wait for those at the provider for so long, then give up the rest."""
        self._closing = True
        for run in {run for run, _ in self._flights}:
            await self.abandon(run)
        tasks = [flight.task for flight in self._flights.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._sender.close()

    def _sent(self, run_id: str, key: str) -> bool:
        return (run_id, key) in self._sender.at_provider

    def _take_off(self, call: Call) -> Flight:
        if self._closing:
            raise GatewayError(503, Code.UNAVAILABLE, "the service is stopping; ask again shortly", retry_after_s=5)
        task = asyncio.get_running_loop().create_task(self._carry(call), name=f"call {call.key}")
        flight = self._flights[call.flight] = Flight(call.request_hash, call.context.attempt, task)
        task.add_done_callback(lambda done: self._land(call, done))
        return flight

    def _land(self, call: Call, task: asyncio.Task[Answered]) -> None:
        self._flights.pop(call.flight, None)
        self._ledger.released(*call.flight)
        self._landed.set()
        self._landed = asyncio.Event()
        where = {"run_id": call.context.run_id, "call_key": call.key, "provider": call.context.provider}
        if task.cancelled():
            log.info("call given up", action="call_abandoned", **where)
        elif (error := task.exception()) is None:
            return
        elif isinstance(error, GatewayError):
            log.warning("call failed", action="call_failed", code=error.code, status=error.status, **where)
        else:
            log.error("call broke", action="call_broken", exc_info=error, **where)

    async def _carry(self, call: Call) -> Answered:
        context = call.context
        opening = Opening(
            run_id=context.run_id,
            call_key=call.key,
            request_hash=call.request_hash,
            provider=context.provider,
            model=context.model,
            worst_nusd=call.worst_nusd,
            budget_nusd=context.budget_nusd,
            day_caps=context.day_caps,
            payer=context.payer,
            attempt=context.attempt,
            question_key=question_key(call.request_hash, self._sender.server(context.provider)),
            reuse_since=context.reuse_since,
        )
        try:
            while True:
                slot = self._sender.take_place(call)  # then it is opened and sent with one write
                opened = None
                try:
                    opened = await self._ledger.open(replace(opening, sent=slot is not None))
                finally:
                    if slot is not None and not isinstance(opened, Reserved):
                        self._sender.give_place_back(call, slot)
                match opened:
                    case Stored(settlement, source):
                        return Answered(settlement, source)
                    case Reserved():
                        return Answered(await self._sender.send(call, slot), Source.BOUGHT)
                    case KeyTaken():
                        raise _key_taken(call)
                    case NotRunning():
                        raise AttemptOver
                    case MadeElsewhere():
                        await self._wait(call, "another process to finish the same call")
                    case NoRoom() as no_room:
                        _check_hope(call, no_room)
                        await self._wait(call, "room in the budget")
        except LedgerUnavailable as error:
            raise GatewayError(503, Code.UNAVAILABLE, f"the ledger cannot be used now: {error}", retry_after_s=2) from error

    async def _wait(self, call: Call, reason: str) -> None:
        """Until some call here has ended, or for a moment: other processes change the book too."""
        with self._board.waiting(call.flight, lambda: f"waiting for {reason}"):
            try:
                await asyncio.wait_for(self._landed.wait(), POLL_S)
            except TimeoutError:
                return


class Asking:
    """One who waits at the desk for the answer to a call. Whoever stops waiting does not stop the call."""

    def __init__(self, desk: CallDesk, call: Call) -> None:
        self._desk = desk
        self._call = call
        self._flight, self._joined = desk.flight_of(call)

    async def within(self, patience_s: float | None) -> Answered | None:
        """The answer, or None when it is not there after so many seconds."""
        while True:
            task = self._flight.task
            await asyncio.wait((task,), timeout=patience_s)
            if not task.done():
                return None
            if task.cancelled():
                raise GatewayError(503, Code.UNAVAILABLE, "the call was given up: the run ended or the service stops")
            try:
                answered = task.result()
            except AttemptOver:
                if self._flight.attempt == self._call.context.attempt:
                    raise
                self._flight, self._joined = self._desk.flight_of(self._call)  # it was an earlier attempt that was over
                continue
            bought_by_another = self._joined and answered.source is Source.BOUGHT
            return replace(answered, source=Source.REPLAYED) if bought_by_another else answered


def _check_hope(call: Call, no_room: NoRoom) -> None:
    """Refuse a call that will not fit even when everything under way turns out to cost nothing."""
    budget, whose = (call.context.budget_nusd or 0, "of the run")
    if no_room.cap is not None:
        budget, whose = no_room.cap.nusd, no_room.cap.whose
    if no_room.reserved_nusd and no_room.spent_nusd + call.worst_nusd <= budget:
        return
    sentence = (
        f"the budget {whose}, ${usd(budget):.4f}, has no room for this call: ${usd(no_room.spent_nusd):.4f} is spent, "
        f"and the call may cost up to ${usd(call.worst_nusd):.4f}"
    )
    raise GatewayError(402, Code.BUDGET_EXHAUSTED, sentence)


def _key_taken(call: Call) -> GatewayError:
    sentence = f"call key {call.key} was used for a different request; a new question needs a new key (the next turn)"
    return GatewayError(409, Code.CONFLICT, sentence)
