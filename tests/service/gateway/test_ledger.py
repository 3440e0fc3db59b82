"""The rules of the ledger, held against every ledger there is."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from orchestrator.gateway.calls import DayCap, Settlement, Source
from orchestrator.gateway.ledger import report_queries as call_reports
from orchestrator.gateway.ledger.database import BELIEVED_S, DatabaseLedger
from orchestrator.gateway.ledger.ledger import (
    Failure,
    KeyConflict,
    MadeElsewhere,
    NoRoom,
    NotRunning,
    Opened,
    Opening,
    Recovery,
    Reservation,
    Spending,
    Stored,
)
from orchestrator.gateway.protocols.protocol import Finish, TokenUsage
from runner.contract.run_spec import Protocol
from tests.postgres_from_wheel import TEMPLATE
from tests.service.gateway.ledgers import LedgerWorld, database_world, memory_world

pytestmark = pytest.mark.anyio

ANSWER = Settlement(
    protocol=Protocol.ANTHROPIC,
    message={"text": "ünï\ud83d"},
    usage=TokenUsage(10, 20, 3, 2, 1),
    finish=Finish.STOP,
    cost_nano_usd=30,
    tries=1,
    queue_s=0.5,
    provider_s=1.5,
)


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    def make(kind: str) -> str:
        if kind == "sqlite":
            shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "ledger.db")
            return f"sqlite:///{tmp_path / 'ledger.db'}"
        server = request.getfixturevalue("postgres")
        return str(server.url(server.create(TEMPLATE)))

    return make


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, database_url: Callable[[str], str]) -> AsyncIterator[LedgerWorld]:
    made = memory_world() if request.param == "memory" else database_world(database_url(request.param))
    async with made as world:
        yield world


def opening(
    key: str = "k", *, digest: str = "h", worst: int = 100, budget: int | None = None, run: str = "run-1"
) -> Opening:
    return Opening(run, key, digest, "p", "m", worst, budget)


async def test_a_call_is_reserved_once_and_replayed_ever_after(world: LedgerWorld) -> None:
    ledger = world.ledger
    assert await ledger.open(opening()) == Reservation()
    assert await ledger.open(opening()) == MadeElsewhere()
    await ledger.sent("run-1", "k")
    assert await ledger.open(opening()) == MadeElsewhere()
    await ledger.settle("run-1", "k", ANSWER)
    for book in (ledger, await world.restart()):
        assert await book.open(opening()) == Stored(ANSWER)
    assert await ledger.open(opening(run="run-2")) == Reservation()


async def test_a_key_belongs_to_one_question(world: LedgerWorld) -> None:
    await world.ledger.open(opening())
    assert await world.ledger.open(opening(digest="other")) == KeyConflict()
    await world.ledger.settle("run-1", "k", ANSWER)
    assert await world.ledger.open(opening(digest="other")) == KeyConflict()


async def test_a_failed_call_frees_its_money_and_may_be_asked_again(world: LedgerWorld) -> None:
    ledger = world.ledger
    await ledger.open(opening(budget=100))
    await ledger.sent("run-1", "k")
    await ledger.fail("run-1", "k", Failure("no", False, 0, 0))
    assert await ledger.open(opening(digest="other", budget=100)) == Reservation()


async def test_the_worst_case_of_all_that_is_under_way_fits_the_budget(world: LedgerWorld) -> None:
    ledger = world.ledger
    for key in ("a", "b"):
        assert await ledger.open(opening(key, budget=250)) == Reservation()
    assert await ledger.open(opening("c", budget=250)) == NoRoom(0, 200)
    await ledger.settle("run-1", "a", ANSWER)
    assert await ledger.open(opening("c", budget=250)) == Reservation()
    assert await ledger.open(opening("d", budget=250)) == NoRoom(30, 200)
    assert await ledger.open(opening("d", budget=None)) == Reservation()
    spending = await ledger.spending("run-1")
    assert (spending.settled_nano_usd, spending.reserved_nano_usd, spending.lost_sends) == (30, 300, 0)


async def test_what_may_have_been_billed_counts_as_spent(world: LedgerWorld) -> None:
    ledger = world.ledger
    await ledger.open(opening("a", budget=350))
    await ledger.sent("run-1", "a")
    assert await ledger.again("run-1", "a", 350)
    assert await ledger.again("run-1", "a", 350)
    assert not await ledger.again("run-1", "a", 350)
    await ledger.fail("run-1", "a", Failure("cut", True, 0, 0))
    spending = await ledger.spending("run-1")
    assert (spending.lost_nano_usd, spending.lost_sends, spending.reserved_nano_usd) == (300, 3, 0)
    assert await ledger.open(opening("b", budget=350)) == NoRoom(300, 0)
    assert await ledger.open(opening("b", worst=50, budget=350)) == Reservation()


async def test_a_process_that_comes_back_frees_what_was_not_sent_and_counts_the_rest(world: LedgerWorld) -> None:
    for key in ("reserved", "sent", "settled"):
        await world.ledger.open(opening(key))
    for key in ("sent", "settled"):
        await world.ledger.sent("run-1", key)
    await world.ledger.settle("run-1", "settled", ANSWER)
    after = await world.restart()
    assert await after.recover() == Recovery(unsent=1, lost=1)
    assert await after.recover() == Recovery(0, 0)
    spending = await after.spending("run-1")
    assert (spending.lost_sends, spending.lost_nano_usd, spending.reserved_nano_usd) == (1, 100, 0)
    assert await after.open(opening("reserved")) == Reservation()
    assert await after.open(opening("sent")) == Reservation()
    assert await after.open(opening("settled")) == Stored(ANSWER)


async def test_a_try_that_cost_nothing_is_not_lost_in_a_crash(world: LedgerWorld) -> None:
    await world.ledger.open(opening())
    await world.ledger.sent("run-1", "k")
    await world.ledger.refused("run-1", "k")
    assert await (await world.restart()).recover() == Recovery(unsent=1, lost=0)


async def test_what_is_opened_as_sent_counts_as_sent(world: LedgerWorld) -> None:
    await world.ledger.open(replace(opening("new"), sent=True))
    await world.ledger.open(opening("failed"))
    await world.ledger.fail("run-1", "failed", Failure("x", False, 0, 0))
    assert await world.ledger.open(replace(opening("failed"), sent=True)) == Reservation()
    assert await (await world.restart()).recover() == Recovery(unsent=0, lost=2)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_an_attempt_that_is_over_opens_nothing_and_is_told_nothing(
    kind: str, database_url: Callable[[str], str]
) -> None:
    async with database_world(database_url(kind)) as world:
        assert world.db is not None

        async def now(status: str, attempt: int) -> None:
            change = text("UPDATE container_runs SET status = :status, attempt = :attempt")
            assert world.db is not None
            await world.db.write(lambda s: s.connection().execute(change, {"status": status, "attempt": attempt}))

        first, second = replace(opening(), attempt=1), replace(opening(), attempt=2)
        await now("running", 1)
        assert await world.ledger.open(first) == Reservation()
        await now("running", 2)
        assert await world.ledger.open(first) == NotRunning()
        assert await world.ledger.open(second) == MadeElsewhere()
        await world.ledger.settle("run-1", "k", ANSWER)
        assert await world.ledger.open(first) == NotRunning()
        assert await world.ledger.open(second) == Stored(ANSWER)
        await now("completed", 2)
        assert await world.ledger.open(second) == NotRunning()


async def test_of_many_that_open_one_key_one_gets_it(world: LedgerWorld) -> None:
    opened = await asyncio.gather(*(world.ledger.open(opening(budget=100)) for _ in range(12)))
    assert sorted(type(each).__name__ for each in opened) == ["MadeElsewhere"] * 11 + ["Reservation"]


async def test_many_at_once_do_not_pass_the_budget(world: LedgerWorld) -> None:
    opened: list[Opened] = await asyncio.gather(*(world.ledger.open(opening(f"k{n}", budget=450)) for n in range(20)))
    assert sum(isinstance(each, Reservation) for each in opened) == 4


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_another_process_takes_over_only_after_the_owner_is_silent(
    kind: str, database_url: Callable[[str], str]
) -> None:
    async with database_world(database_url(kind)) as world:
        assert world.db is not None
        other = DatabaseLedger(world.db, world.clock, "two")
        await world.ledger.open(opening())
        await world.ledger.sent("run-1", "k")
        world.clock.seconds += BELIEVED_S - 1
        await world.ledger.beat()
        world.clock.seconds += BELIEVED_S - 1
        assert await other.recover() == Recovery(0, 0)
        assert await other.beat() == Recovery(0, 0)
        assert await other.open(opening()) == MadeElsewhere()
        world.clock.seconds += 2
        assert await other.open(opening()) == Reservation()
        assert (await other.spending("run-1")).lost_sends == 1
        await other.settle("run-1", "k", ANSWER)
        assert await world.ledger.open(opening()) == Stored(ANSWER)


async def test_a_call_that_could_not_be_written_off_is_not_in_flight_for_ever(database_url: Callable[[str], str]) -> None:
    async with database_world(database_url("sqlite")) as world:
        await world.ledger.open(opening())
        await world.ledger.sent("run-1", "k")
        world.ledger.released("run-1", "k")
        assert await world.ledger.open(opening()) == Reservation()
        assert (await world.ledger.spending("run-1")).lost_sends == 1


async def test_the_run_shows_what_it_cost(database_url: Callable[[str], str]) -> None:
    async with database_world(database_url("sqlite")) as world:
        assert world.db is not None
        for key in ("a", "b"):
            await world.ledger.open(opening(key))
            await world.ledger.settle("run-1", key, ANSWER)
        query = text("SELECT cost_usd FROM container_runs WHERE id = 'run-1'")
        cost = await world.db.read(lambda session: session.connection().execute(query).scalar_one())
    assert cost == pytest.approx(60e-9)


async def test_the_day_has_a_budget_for_all_runs_together(world: LedgerWorld) -> None:
    ledger = world.ledger

    def capped(key: str, run: str = "run-1") -> Opening:
        return replace(opening(key, run=run), day_caps=(DayCap(250),))

    assert await ledger.open(capped("a")) == Reservation()
    assert await ledger.open(capped("a", "run-2")) == Reservation()
    assert await ledger.open(capped("b", "run-2")) == NoRoom(0, 200, DayCap(250))
    await ledger.sent("run-1", "a")
    await ledger.settle("run-1", "a", ANSWER)
    assert await ledger.open(capped("b", "run-2")) == Reservation()
    await ledger.sent("run-2", "b")
    assert not await ledger.again("run-2", "b", None, (DayCap(250),))
    await ledger.fail("run-2", "b", Failure("x", True, 0, 0))
    assert await ledger.open(capped("c")) == NoRoom(130, 100, DayCap(250))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_new_day_has_a_new_budget_and_days_are_kept_apart(kind: str, database_url: Callable[[str], str]) -> None:
    async with database_world(database_url(kind)) as world:
        assert world.db is not None
        full = replace(opening("b"), day_caps=(DayCap(100),))
        await world.ledger.open(opening("a", worst=100))
        await world.ledger.settle("run-1", "a", ANSWER)
        assert await world.ledger.open(full) == NoRoom(30, 0, DayCap(100))
        world.clock.seconds += 24 * 3600
        assert await world.ledger.open(full) == Reservation()
        await world.ledger.settle("run-1", "b", ANSWER)
        by_day = await world.db.read(lambda s: call_reports.spending(s, since="2026-11-01", by_day=True))
        assert [(row.day, row.model, row.calls, row.input_tokens) for row in by_day] == [
            ("2026-11-17", "m", 1, 10),
            ("2026-11-16", "m", 1, 10),
        ]
        (by_model,) = await world.db.read(lambda s: call_reports.spending(s, since="2026-11-17", by_day=False))
        assert (by_model.model, by_model.calls) == ("m", 1)


def asking(key: str, run: str, *, question: str = "q", reuse: bool = True) -> Opening:
    since = datetime(2026, 11, 1, tzinfo=UTC) if reuse else None
    return replace(opening(key, run=run, budget=1000), question_key=question, reuse_since=since)


async def test_an_answer_of_another_run_is_used_again_but_once_per_run(world: LedgerWorld) -> None:
    ledger = world.ledger
    # Given two samples of one problem, bought by one run
    bought = {}
    for sample in (0, 1):
        key = f"b/p/{sample}/0"
        assert await ledger.open(asking(key, "run-1")) == Reservation()
        bought[key] = replace(ANSWER, message={"sample": sample})
        await ledger.settle("run-1", key, bought[key])
        world.clock.seconds += 1
    # When another run asks the same, three times at once and in another order
    keys = ["b/p/1/0", "b/p/2/0", "b/p/0/0"]
    opened = await asyncio.gather(*(ledger.open(asking(key, "run-2")) for key in keys))
    # Then each answer is given once, for nothing, and the third is to be bought
    given = [each for each in opened if isinstance(each, Stored)]
    assert [each.source for each in given] == [Source.CACHED] * 2
    assert sorted(each.settlement.message["sample"] for each in given) == [0, 1]
    assert [each.settlement.cost_nano_usd for each in given] == [0, 0]
    assert opened.count(Reservation()) == 1
    assert await ledger.spending("run-2") == Spending(0, 0, 100, 0)
    # And asked again, each call has what it had, though it was taken from another run
    for key, first in zip(keys, opened, strict=True):
        again = await ledger.open(asking(key, "run-2"))
        assert again == (Stored(first.settlement) if isinstance(first, Stored) else MadeElsewhere())


async def test_what_may_not_be_used_again_is_bought(world: LedgerWorld) -> None:
    ledger = world.ledger
    assert await ledger.open(asking("k", "run-1")) == Reservation()
    await ledger.settle("run-1", "k", ANSWER)
    assert await ledger.open(asking("failed", "run-1", question="f")) == Reservation()
    await ledger.fail("run-1", "failed", Failure("no", False, 0, 0))
    for number, other in enumerate(
        (
            asking("k", "run-2", reuse=False),
            asking("k", "run-2", question="another"),
            asking("k", "run-2", question="f"),
            asking("k2", "run-1"),
        )
    ):
        assert (
            await ledger.open(replace(other, call_key=f"{other.call_key}/{number}", budget_nano_usd=None)) == Reservation()
        )
    # A copy is not another answer: only what was bought is handed on
    assert isinstance(await ledger.open(asking("x", "run-2")), Stored)
    assert await ledger.open(replace(asking("y", "run-2"), budget_nano_usd=None)) == Reservation()


async def test_an_answer_that_is_too_old_is_not_used_again(world: LedgerWorld) -> None:
    if world.db is None:
        return  # a ledger in memory does not live that long
    assert await world.ledger.open(asking("k", "run-1")) == Reservation()
    await world.ledger.settle("run-1", "k", ANSWER)
    late = replace(asking("k", "run-2"), reuse_since=datetime(2026, 11, 17, tzinfo=UTC))
    assert await world.ledger.open(late) == Reservation()


async def test_what_is_told_twice_counts_once(world: LedgerWorld) -> None:
    """The answer of a commit may be lost on the way; then everything is told again."""
    if world.db is None:
        return  # memory always answers
    ledger = world.ledger
    await ledger.open(opening("a", budget=1000))
    await ledger.open(opening("b", budget=1000))
    for _ in range(2):
        await ledger.settle("run-1", "a", ANSWER)
        await ledger.fail("run-1", "b", Failure("no", True, 0, 0))
    assert await ledger.spending("run-1") == Spending(30, 100, 0, 1)
