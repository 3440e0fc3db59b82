from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.service import Service

os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")

POSTGRES_IMAGE = "benchyard-postgres:17"

StartService = Callable[..., Service]
EITHER = ["sqlite", pytest.param("postgresql", marks=pytest.mark.exhaustive)]
ON_EITHER = pytest.mark.parametrize("database_url", EITHER, indirect=True)
"""For faults that the database has no part in: the second one is for those with more time."""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    from testcontainers.community.postgres import PostgresContainer

    with PostgresContainer(POSTGRES_IMAGE, username="by", password="by", dbname="by", driver="psycopg") as container:
        yield container.get_connection_url(host="127.0.0.1")


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """None for SQLite in the data directory, else the address of an empty PostgreSQL database."""
    if request.param == "sqlite":
        return None
    import uuid

    import psycopg

    server = request.getfixturevalue("postgres_server").replace("postgresql+psycopg://", "postgresql://")
    name = "by_" + uuid.uuid4().hex[:12]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.rsplit("/", 1)[0] + "/" + name


@pytest.fixture
def start_service(tmp_path: Path, database_url: str | None) -> Iterator[StartService]:
    started: list[Service] = []

    def start(**settings: object) -> Service:
        service = Service(tmp_path / f"data{len(started)}", database_url=database_url, **settings)
        started.append(service)
        service.start()
        return service

    yield start
    for service in started:
        service.close()
