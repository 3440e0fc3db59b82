"""The leader lease: one leads, an old epoch writes nothing (F4), and what orchestrators of one database share."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from orchestrator.db.session import Database
from orchestrator.models import queries as model_queries
from orchestrator.models.demo import seed_demo_models
from orchestrator.runs.scheduling.leading import lease_queries
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from tests.manual_clock import START, ManualClock
from tests.rows import a_model

pytestmark = pytest.mark.anyio


@pytest.fixture
def leaders(database: Database, clock: ManualClock) -> tuple[Leadership, Leadership]:
    return Leadership(database, clock, "a", 15), Leadership(database, clock, "b", 15)


async def test_one_leads_until_its_lease_ends(leaders: tuple[Leadership, Leadership], clock: ManualClock) -> None:
    a, b = leaders
    assert await a.hold()
    assert not await b.hold()
    clock.advance(10)
    assert await a.hold()
    clock.advance(10)
    assert not await b.hold(), "the lease was renewed"
    clock.advance(6)
    assert await b.hold()
    assert (a.epoch, b.epoch) == (1, 2)


async def test_an_old_epoch_writes_nothing(
    leaders: tuple[Leadership, Leadership], clock: ManualClock, database: Database
) -> None:
    # Given a leader that stood still while another took over
    a, b = leaders
    await a.hold()
    clock.advance(20)
    await b.hold()
    # When it goes on where it was
    with pytest.raises(LeadershipLost):
        await a.write(lambda s: s.add(a_model()))
    # Then nothing is written, and its next round finds out
    assert await database.read(lambda s: model_queries.by_slug(s, "m1")) is None
    assert not await a.hold()
    await b.write(lambda s: s.add(a_model()))


async def test_the_same_orchestrator_after_a_restart_has_a_new_epoch(database: Database, clock: ManualClock) -> None:
    first = Leadership(database, clock, "a", 15)
    await first.hold()
    second = Leadership(database, clock, "a", 15)
    assert await second.hold(), "it need not wait for the lease of its own earlier life"
    assert second.epoch == 2
    with pytest.raises(LeadershipLost):
        await first.write(lambda s: None)


async def test_released_it_is_free_at_once(leaders: tuple[Leadership, Leadership]) -> None:
    a, b = leaders
    await a.hold()
    await a.release()
    assert await b.hold()
    with pytest.raises(LeadershipLost):
        await a.write(lambda s: None)


async def test_many_at_once_on_an_empty_table(database: Database) -> None:
    until = START + timedelta(seconds=15)
    tries = [database.write(lambda s, n=n: lease_queries.acquire(s, f"o{n}", START, until)) for n in range(8)]
    epochs = await asyncio.gather(*tries)
    assert sorted(epochs, key=str) == [1, *[None] * 7]


async def test_a_shared_fact_is_the_first_one_proposed(database: Database) -> None:
    tries = [database.write(lambda s, n=n: lease_queries.shared_fact(s, "instance", f"by-{n}")) for n in range(8)]
    assert len(set(await asyncio.gather(*tries))) == 1


async def test_demo_models_are_seeded_once(database: Database) -> None:
    times = [START + timedelta(microseconds=n) for n in range(6)]
    await asyncio.gather(*(database.write(lambda s, at=at: seed_demo_models(s, at)) for at in times))
    rows = await database.read(lambda s: model_queries.page(s, limit=10))
    assert [row.slug for row in rows] == ["demo-strong", "demo-weak"]
    # Somebody who deletes them does not get them back.
    await database.write(lambda s: [s.delete(s.merge(row)) for row in rows])
    await database.write(lambda s: seed_demo_models(s, START + timedelta(days=1)))
    assert await database.read(lambda s: model_queries.page(s, limit=10)) == []
