"""Statements handed to the driver as they are do what they do through SQLAlchemy, with its types and its errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, bindparam, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, ProgrammingError

from orchestrator.db.prepared import Prepared
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.gateway.ledger.tables import GatewayFlight
from orchestrator.models.tables import LlmModel
from tests.manual_clock import START
from tests.rows import a_model

pytestmark = pytest.mark.anyio

MODELS: Any = LlmModel.__table__  # type: ignore[attr-defined]
FLIGHTS: Any = GatewayFlight.__table__  # type: ignore[attr-defined]
BY_SLUG = MODELS.c.slug == bindparam("of_slug")


def columns(slug: str, **given: Any) -> dict[str, Any]:
    return {name: value for name, value in a_model(slug).model_dump().items() if name != "id"} | given


async def test_values_come_back_as_through_sqlalchemy(database: Database) -> None:
    add, read = Prepared(insert(MODELS)), select(MODELS).where(BY_SLUG)
    elsewhere = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=5)))

    def work(connection: Connection) -> tuple[Any, Any]:
        assert add.run(connection, columns("a", params={"thinking": [1, None]}, created_at=elsewhere, input_price=0.5)) == 1
        return Prepared(read).first(connection, {"of_slug": "a"}), connection.execute(read, {"of_slug": "a"}).first()

    ours, theirs = await database.write_plain(work)
    assert ours == tuple(theirs)
    assert elsewhere.astimezone(UTC) in ours


async def test_columns_that_are_not_named_have_their_defaults(database: Database) -> None:
    times = {"created_at": START, "updated_at": START}
    required = {"provider": "demo", "name": "x", "protocol": "openai_chat", "params": {}, **times}
    others = select(*(column for column in MODELS.c if column.name not in ("id", "slug"))).where(BY_SLUG)

    def work(connection: Connection) -> Any:
        Prepared(insert(MODELS)).run(connection, {**required, "slug": "ours"})
        connection.execute(insert(MODELS), {**required, "slug": "theirs"})
        return [connection.execute(others, {"of_slug": slug}).one() for slug in ("ours", "theirs")]

    ours, theirs = await database.write_plain(work)
    assert ours == theirs


async def test_one_statement_takes_different_columns_and_counts_rows(database: Database) -> None:
    change = Prepared(update(MODELS).where(BY_SLUG))

    def work(connection: Connection) -> tuple[int, int, int, Any]:
        Prepared(insert(MODELS)).run(connection, columns("a"))
        counts = [
            change.run(connection, {"of_slug": slug, **values})
            for slug, values in [("a", {"name": "x"}), ("a", {"input_price": 2.0, "name": "y"}), ("none", {"name": "z"})]
        ]
        found = Prepared(select(MODELS.c.name, MODELS.c.input_price).where(BY_SLUG)).first(connection, {"of_slug": "a"})
        return *counts, found

    assert await database.write_plain(work) == (1, 1, 0, ("y", 2.0))


async def test_what_is_not_there_is_none(database: Database) -> None:
    found = await database.write_plain(lambda c: Prepared(select(MODELS.c.id).where(BY_SLUG)).first(c, {"of_slug": "no"}))
    assert found is None
    total = await database.write_plain(lambda c: Prepared(select(func.sum(MODELS.c.input_price))).first(c, {}))
    assert total == (None,)


async def test_errors_are_sqlalchemys_and_undo_only_their_job(database: Database) -> None:
    add = Prepared(insert(MODELS))
    await database.write_plain(lambda connection: add.run(connection, columns("a")))
    with pytest.raises(IntegrityError):
        await database.write_plain(lambda connection: add.run(connection, columns("a")))
    missing = Prepared(select(MODELS.c.id).where(func.no_such_function(MODELS.c.id) == bindparam("x")))
    with pytest.raises((DatabaseUnavailable, ProgrammingError), match="no_such_function"):
        await database.write_plain(lambda connection: missing.first(connection, {"x": 1}))
    found = await database.write_plain(lambda c: Prepared(select(func.count(MODELS.c.id))).first(c, {}))
    assert found == (1,)


async def test_a_default_that_is_computed_is_refused(database: Database) -> None:
    table = Table("t", MetaData(), Column("a", Integer), Column("b", Integer, default=lambda: 1))
    with pytest.raises(TypeError, match="computed"):
        await database.write_plain(lambda connection: Prepared(insert(table)).run(connection, {"a": 1}))


async def test_a_time_without_zone_is_refused(database: Database) -> None:
    values = {"run_id": "r", "call_key": "k", "owner": "o", "until": datetime(2026, 1, 1)}
    with pytest.raises(Exception, match="without zone"):
        await database.write_plain(lambda connection: Prepared(insert(FLIGHTS)).run(connection, values))


async def test_many_rows_at_once(database: Database) -> None:
    add = Prepared({"sqlite": _once(sqlite), "postgresql": _once(postgresql)})
    change = Prepared(update(MODELS).where(BY_SLUG))

    def work(connection: Connection) -> Any:
        first = add.run_each(connection, [columns("a"), columns("b")])
        second = add.run_each(connection, [columns("b"), columns("c"), columns("a")])
        change.run_many(connection, [{"of_slug": "a", "name": "new a"}, {"of_slug": "c", "name": "new c"}])
        assert add.run_each(connection, []) == []
        change.run_many(connection, [])
        rows = connection.execute(select(MODELS.c.slug, MODELS.c.name).order_by(MODELS.c.slug)).all()
        return first, second, {slug: name for slug, name in rows if name.startswith("new")}

    assert await database.write_plain(work) == ([1, 1], [0, 1, 0], {"a": "new a", "c": "new c"})


def _once(dialect: Any) -> Any:
    return dialect.insert(MODELS).on_conflict_do_nothing(index_elements=["slug"])
