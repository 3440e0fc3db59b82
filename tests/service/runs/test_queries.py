"""Statements: one accepted result per item, events in commit order, the queue's order, pages, what is forgotten."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import timedelta

import pytest
from sqlmodel import Session

from orchestrator.db import idempotency as idempotency_queries
from orchestrator.db.session import Database
from orchestrator.gateway.ledger.tables import GatewayCall
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.live import queries as event_queries
from tests.manual_clock import START
from tests.rows import a_model, a_run, an_attempt, an_item

pytestmark = pytest.mark.anyio


@pytest.fixture
async def run_id(database: Database) -> str:
    def make(session: Session) -> str:
        session.add(a_model())
        session.flush()
        run = a_run()
        session.add(run)
        return run.id

    return await database.write(make)


async def test_the_first_result_of_an_item_stays(database: Database, run_id: str) -> None:
    first = await database.write(lambda s: item_queries.insert_new(s, an_item(run_id, outcome="passed")))
    second = await database.write(lambda s: item_queries.insert_new(s, an_item(run_id, outcome="wrong_answer", attempt=2)))
    assert (first, second) == (True, False)
    row = await database.read(lambda s: item_queries.at(s, run_id, 0))
    assert row is not None
    assert (row.outcome, row.attempt, row.data) == ("passed", 1, {"answer": "x" * 50})


async def test_one_of_many_at_once_is_accepted(database: Database, run_id: str) -> None:
    tries = [database.write(lambda s, n=n: item_queries.insert_new(s, an_item(run_id, attempt=n))) for n in range(10)]
    assert sum(await asyncio.gather(*tries)) == 1


async def test_numbers_grow_in_commit_order(database: Database) -> None:
    """Whoever has seen number n never misses a smaller one, however long some transactions take."""
    seen: list[int] = []
    done = asyncio.Event()
    rng = random.Random(1)

    def slow_append(session: Session, pause: float) -> None:
        event_queries.append(session, "log", START, data={})
        session.flush()
        time.sleep(pause)

    async def follow() -> None:
        last = 0
        while True:
            ending = done.is_set()
            page = await database.read(lambda s: event_queries.after(s, last))  # noqa: B023
            seen.extend(event.id or 0 for event in page)
            last = seen[-1] if seen else 0
            if ending:
                return
            await asyncio.sleep(0.001)

    follower = asyncio.create_task(follow())
    pauses = [rng.uniform(0, 0.01) for _ in range(60)]
    await asyncio.gather(*(database.write(lambda s, p=pause: slow_append(s, p)) for pause in pauses))
    done.set()
    await follower
    assert len(seen) == 60
    assert seen == sorted(set(seen))


async def test_old_events_go_but_neither_transitions_nor_the_newest_number(database: Database) -> None:
    kinds = ["log", "transition", "log", "progress"]
    for kind in kinds:
        await database.write(lambda s, k=kind: event_queries.append(s, k, START, data={}))
    last = await database.read(event_queries.last_number)
    later = START + timedelta(days=40)
    await database.write(lambda s: event_queries.forget_before(s, later))
    left = await database.read(lambda s: event_queries.after(s, 0))
    assert [event.type for event in left] == ["transition", "progress"]
    await database.write(lambda s: event_queries.append(s, "log", later, data={}))
    assert await database.read(event_queries.last_number) == last + 1


async def test_the_queue_is_by_priority_then_age(database: Database, run_id: str) -> None:
    def more(session: Session) -> list[str]:
        second = timedelta(seconds=1)
        rows = [
            a_run(now=START + second, priority=5),
            a_run(now=START + 2 * second, priority=5),
            a_run(now=START + 3 * second, not_before=START + timedelta(minutes=1), priority=9),
            a_run(now=START + 4 * second, status="running", priority=9),
        ]
        session.add_all(rows)
        return [row.id for row in rows]

    ids = await database.write(more)
    due = await database.read(lambda s: run_queries.due(s, START, 10))
    assert [run.id for run in due] == [ids[0], ids[1], run_id]
    late = await database.read(lambda s: run_queries.due(s, START + timedelta(minutes=1), 10))
    assert late[0].id == ids[2]


async def test_live_runs_come_with_their_current_attempt(database: Database, run_id: str) -> None:
    def set_up(session: Session) -> None:
        run = run_queries.lock(session, run_id)
        assert run is not None
        run.status, run.attempt = "running", 2
        session.add_all([run, an_attempt(run_id, 1, "old", ended_at=START), an_attempt(run_id, 2, "new")])

    await database.write(set_up)
    ((run, attempt),) = await database.read(run_queries.live)
    assert (run.id, attempt.number) == (run_id, 2)
    holding = await database.read(run_queries.holding_attempts)
    assert [row.number for row in holding] == [2]


async def test_an_answer_is_remembered_once_and_forgotten_after_a_day(database: Database) -> None:
    def remember(session: Session, n: int) -> dict[str, int]:
        known = idempotency_queries.remember(session, "POST /x", "key", f"{n}", {"n": n}, START)
        return {"n": n} if known is None else known.answer

    answers = await asyncio.gather(*(database.write(lambda s, n=n: remember(s, n)) for n in range(8)))
    assert len({answer["n"] for answer in answers}) == 1
    assert await database.write(lambda s: idempotency_queries.forget_before(s, START)) == 0
    assert await database.write(lambda s: idempotency_queries.forget_before(s, START + timedelta(days=1))) == 1
    assert await database.read(lambda s: idempotency_queries.find(s, "POST /x", "key")) is None


async def test_a_retry_gets_results_and_paid_answers(database: Database, run_id: str) -> None:
    def set_up(session: Session) -> str:
        new = a_run()
        session.add(new)
        call = {"request_hash": "h", "provider": "p", "model": "m", "created_at": START, "cost_usd": 1.5}
        session.add(GatewayCall(run_id=run_id, call_key="a", state="settled", answer=b"paid", **call))
        session.add(GatewayCall(run_id=run_id, call_key="b", state="sent", **call))
        session.flush()
        item_queries.insert_new(session, an_item(run_id, "p0"))
        item_queries.insert_new(session, an_item(run_id, "p1", outcome="infra_error", position=1))
        item_queries.copy(session, run_id, new.id, without=["infra_error", "provider_error"])
        item_queries.copy_answers(session, run_id, new.id)
        return new.id

    new_id = await database.write(set_up)
    assert await database.read(lambda s: item_queries.keys(s, new_id)) == [("sample", "p0", 0)]
    call = await database.read(lambda s: s.get(GatewayCall, (new_id, "a")))
    assert call is not None
    assert (call.answer, call.cost_usd) == (b"paid", 0.0)
    assert (call.source, call.from_run, call.from_key) == ("replayed", run_id, "a")
    assert await database.read(lambda s: s.get(GatewayCall, (new_id, "b"))) is None


async def test_times_come_back_aware_and_a_naive_one_is_refused(database: Database, run_id: str) -> None:
    run = await database.read(lambda s: run_queries.get(s, run_id))
    assert run is not None
    assert run.created_at == START
    assert run.created_at.utcoffset() == timedelta(0)
    with pytest.raises(Exception, match="without zone"):
        await database.write(lambda s: s.add(a_run(created_at=START.replace(tzinfo=None))))
