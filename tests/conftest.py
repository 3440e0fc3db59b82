"""Shared fixtures. A database test runs on SQLite and on PostgreSQL; what it needs and cannot get fails."""

from __future__ import annotations

import gc
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests.manual_clock import ManualClock
from tests.memory_folder import new_folder
from tests.postgres_from_wheel import TEMPLATE, PostgresFromWheel

if TYPE_CHECKING:  # what a test does not use, it does not wait for
    from orchestrator.db.session import Database
    from orchestrator.settings import Settings
    from tests.kubernetes.cluster import Cluster
    from tests.served import Service


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So a shell starts what runs in the background; commands that the tests start and interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("no clock", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("no clock")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported stays until the end: the garbage collector need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresFromWheel]:
    """One server for the session, with a migrated template that each test copies."""
    from orchestrator.db.migrate import migrate

    server = PostgresFromWheel()
    try:
        server.start()
        name = server.create()
        migrate(server.url(name))
        server.keep_as_template(name)
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The user's cluster or two nodes on this machine, for the whole session."""
    from tests.kubernetes.cluster import any_cluster

    with any_cluster() as found:
        yield found


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from orchestrator.db.migrate import migrate

    path = tmp_path_factory.mktemp("template") / "benchyard.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def benchmark_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with small benchmark files in the published formats, see `tests.benchmark_records`."""
    from tests.benchmark_records.files import write_files

    folder = tmp_path_factory.mktemp("benchmark-files")
    write_files(folder)
    return folder


@pytest.fixture(params=["sqlite", "postgresql"])
def dialect(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A folder for databases: as `tmp_path`, without a disk to wait for."""
    path = new_folder("benchyard-test-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def empty_database_url(dialect: str, request: pytest.FixtureRequest, memory_path: Path) -> Iterator[str]:
    """A database with nothing in it, no tables either."""
    if dialect == "sqlite":
        yield f"sqlite:///{memory_path / 'empty.db'}"
        return
    server: PostgresFromWheel = request.getfixturevalue("postgres")
    name = server.create()
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def migrated_database_url(dialect: str, request: pytest.FixtureRequest, memory_path: Path) -> Iterator[str]:
    """A database with the newest tables and no rows."""
    if dialect == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), memory_path / "benchyard.db")
        yield f"sqlite:///{memory_path / 'benchyard.db'}"
        return
    server: PostgresFromWheel = request.getfixturevalue("postgres")
    name = server.create(TEMPLATE)
    yield server.url(name)
    server.drop(name)


@pytest.fixture
async def database(migrated_database_url: str, anyio_backend: str) -> AsyncIterator[Database]:
    """An open database, once on SQLite and once on PostgreSQL."""
    from orchestrator.db.session import Database

    db = Database(migrated_database_url)
    yield db
    await db.close()


@pytest.fixture(scope="session")
def data_template(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Path:
    """A data directory as the first start leaves it: a migrated database and the sample's pack."""
    from orchestrator.datasets.catalogue import Catalogue

    path = tmp_path_factory.mktemp("data-template")
    shutil.copy(sqlite_template, path / "benchyard.db")
    Catalogue(path).prepare()
    return path


@pytest.fixture
def new_settings(data_template: Path, memory_path: Path) -> Callable[..., Settings]:
    """Settings for a service of its own; call it again with the same name for the same data directory."""
    return settings_in(memory_path, data_template)


def settings_in(directory: Path, data_template: Path) -> Callable[..., Settings]:
    from orchestrator.settings import Settings
    from tests.served import TOKEN

    def make(name: str = "data", **changed: Any) -> Settings:
        data = directory / name
        if not data.exists():
            shutil.copytree(data_template, data)
        values = {
            "data": data,
            "token": TOKEN,
            "port": 0,
            "runner_port": 0,
            "reconcile_s": 0.1,
            "request_timeout_s": 600,
            "min_free_disk_bytes": 0,
            "min_free_disk_share": 0.0,
            "demo_latency_s": 0.0,
            **changed,
        }
        return Settings(**values)

    return make


@pytest.fixture
async def service(new_settings: Callable[..., Settings], anyio_backend: str) -> AsyncIterator[Service]:
    """The whole service on SQLite with the fake engine, served over HTTP."""
    from tests.served import served

    async with served(new_settings()) as it:
        yield it
        await it.engine.end_all()


@pytest.fixture(scope="module")
async def shared_service(data_template: Path, anyio_backend: str) -> AsyncIterator[Service]:
    """One for all tests of a module, with much room, for those that leave nothing which another would notice."""
    from tests.served import served

    folder = new_folder("benchyard-test-")
    make = settings_in(folder, data_template)
    async with served(make(max_instances=200, vcpu_capacity=1000, memory_capacity_mib=10**7)) as it:
        yield it
        await it.engine.end_all()
    shutil.rmtree(folder, ignore_errors=True)
