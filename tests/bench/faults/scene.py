"""Where a fault takes place: a real service on a real engine, a provider that counts, and a database.

One service carries many repeats. Each repeat has its own view of it (`Scene.fresh`), which remembers the runs that it
submitted. Every run asks its questions with a seed of its own, so that the provider's list says which run asked what.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Engine, create_engine, text

from orchestrator.db.session import database_url as full_url
from tests.bench.faults.watching import Answers, Containers
from tests.faults.counting_provider import CountingProvider
from tests.faults.killing import MODEL, add_model
from tests.faults.service import Service
from tests.postgres_from_wheel import PostgresFromWheel

T = TypeVar("T")
ENDED = ("completed", "failed", "cancelled")
_SEEDS = itertools.count(1)


@dataclass
class Submitted:
    """A run of one repeat."""

    run_id: str
    seed: int
    """The seed its questions carry; 0 if it asks no counting model."""
    seen_items: int = 0
    """The most finished items that the API has shown of it."""
    all_count: bool = True
    """Whether every item of it should have an outcome that counts, once it is completed."""


@dataclass
class Scene:
    service: Service
    provider: CountingProvider
    database_url: str | None
    folder: Path
    containers: Containers
    """Who ever had two live containers."""
    answers: Answers
    """Answers of the API that must not be."""
    postgres: PostgresFromWheel | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    """What a fault's own `open` puts there."""
    runs: list[Submitted] = field(default_factory=list)
    lost: dict[str, float] = field(default_factory=dict)
    """What the repeat lost without breaking an invariant, such as sends under way at a killed orchestrator."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fresh(self) -> Scene:
        """For the next repeat."""
        return replace(self, runs=[], lost={})

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What the repeats of a scene share, made by the first that needs it."""
        with self.lock:
            if name not in self.extras:
                self.extras[name] = make()
            found: T = self.extras[name]
            return found

    # what a user does

    def submit(
        self,
        sample_size: int = 8,
        concurrency: int = 2,
        model: str | None = None,
        seed_of_questions: int | None = None,
        **fields: object,
    ) -> str:
        """A run on the counting model (or another one), remembered for the checks. I9 is checked of runs whose questions
        carry a seed: one of its own, or the one that is given; none if the caller gives parameters."""
        seed = seed_of_questions or 0
        if model is None and "params" not in fields:
            seed = self.next_seed()
            fields = {"params": {"seed": seed}, **fields}
        run_id = self.service.submit(model or str(MODEL["slug"]), sample_size, concurrency=concurrency, **fields)
        self.runs.append(Submitted(run_id, seed))
        return run_id

    def next_seed(self) -> int:
        return next(_SEEDS)

    def adopt(self, run_id: str, seed: int = 0) -> None:
        """Remember a run that was made in another way (by a schedule, a batch, a raw request)."""
        self.runs.append(Submitted(run_id, seed))

    def see(self, run_id: str) -> dict[str, Any]:
        """The run by the API; remembers how many items it was seen to have."""
        run = self.service.run(run_id)
        for submitted in self.runs:
            if submitted.run_id == run_id:
                submitted.seen_items = max(submitted.seen_items, run["progress"]["done"])
        return run

    def running(self, rng: random.Random, longest_s: float = 4.0, sample_size: int = 24) -> tuple[str, dict[str, Any]]:
        """A run that has been running for a random time and still does."""
        while True:
            run_id = self.submit(sample_size)
            self.service.wait_status(run_id, "running", "completed")
            time.sleep(rng.uniform(0, longest_s))
            run = self.see(run_id)
            if run["status"] == "running":
                return run_id, run

    # what the database says

    def rows(self, statement: str, **values: object) -> list[dict[str, Any]]:
        """Rows of a query, read past the service."""
        engine: Engine = create_engine(full_url(self.database_url, self.service.data))
        try:
            with engine.connect() as connection:
                return [dict(row) for row in connection.execute(text(statement), values).mappings()]
        finally:
            engine.dispose()


@dataclass(frozen=True)
class Opening:
    """What `open_scene` needs to know."""

    folder: Path
    settings: Mapping[str, object]
    database: str
    """sqlite or postgresql"""
    provider_latency_s: float = 0.5


@contextmanager
def open_scene(opening: Opening) -> Iterator[Scene]:
    """A service with the counting provider, on SQLite in its folder or on a database of a server of its own."""
    with ExitStack() as stack:
        postgres = None
        url = None
        if opening.database == "postgresql":
            postgres = PostgresFromWheel()
            stack.callback(postgres.close)
            postgres.start()
            url = postgres.url(postgres.create())
        provider = CountingProvider(opening.folder / "provider.log", opening.provider_latency_s)
        stack.enter_context(provider)
        yield stack.enter_context(around_service(opening, provider, url, postgres))


@contextmanager
def around_service(
    opening: Opening,
    provider: CountingProvider,
    url: str | None,
    postgres: PostgresFromWheel | None = None,
    docker_host: str | None = None,
    make_service: Callable[..., Service] = Service,
) -> Iterator[Scene]:
    """The service itself, started, with what watches it."""
    environment = {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "sk-none"}
    service = make_service(opening.folder / "data", database_url=url, environment=environment, **opening.settings)
    containers = Containers(service.instance, docker_host)
    answers = Answers(service.client)
    try:
        service.start()
        containers.start()
        add_model(service)
        yield Scene(service, provider, url, opening.folder, containers, answers, postgres)
    finally:
        containers.stop()
        service.close()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="benchyard-faults-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
