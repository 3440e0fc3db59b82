"""A connection that breaks at a COMMIT: before the server saw it, nothing is stored; after that, nobody knows."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.db.session import CommitUncertain, Database
from orchestrator.models import queries as model_queries
from tests.faults.cutting_postgres import CuttingProxy
from tests.postgres_from_wheel import TEMPLATE, PostgresFromWheel
from tests.rows import a_model

pytestmark = pytest.mark.anyio


@pytest.fixture
async def behind_proxy(postgres: PostgresFromWheel, anyio_backend: str) -> AsyncIterator[tuple[Database, CuttingProxy]]:
    name = postgres.create(TEMPLATE)
    with CuttingProxy(postgres).serving() as proxy:
        database = Database(proxy.url(name))
        yield database, proxy
        await database.close()
    postgres.drop(name)


@pytest.mark.parametrize("answer_lost", [False, True], ids=["before the server saw it", "before its answer came back"])
async def test_it_does_not_say_that_nothing_was_stored(
    behind_proxy: tuple[Database, CuttingProxy], answer_lost: bool
) -> None:
    database, proxy = behind_proxy
    proxy.cut(answer_lost=answer_lost)
    with pytest.raises(CommitUncertain):
        await database.write(lambda s: s.add(a_model()))
    stored = await database.read(lambda s: model_queries.by_slug(s, "m1"))
    assert (stored is not None) is answer_lost
    await database.write(lambda s: s.add(a_model(slug="m2")))
    assert await database.read(lambda s: model_queries.by_slug(s, "m2"))
