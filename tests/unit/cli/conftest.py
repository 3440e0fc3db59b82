"""The command, run in this process against a real service with the fake engine, which lives on a thread of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from orchestrator.cli.main import main
from orchestrator.settings import Settings
from tests.s3_server import Server
from tests.served import TOKEN, Service, http_runner, served


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Benchyard = Callable[..., Ended]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the developer's own settings; a data directory that does not exist; a port where nobody listens."""
    for name in ("URL", "TOKEN", "HOST", "ENGINE", "INSTANCE", "RUNNER_NETWORK"):
        monkeypatch.delenv(f"BENCHYARD_{name}", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("BENCHYARD_DATA", str(tmp_path / "cli-data"))
    monkeypatch.setenv("BENCHYARD_PORT", "9")


@pytest.fixture
def benchyard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Benchyard:
    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["benchyard", *words])
        with pytest.raises(SystemExit) as exit_:
            main()
        said = capsys.readouterr()
        return Ended(int(exit_.value.code or 0), said.out, said.err)

    return run


class Served:
    """A service on its own thread and event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ready = threading.Event()
        self._over: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.service: Service | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="served")
        self._thread.start()
        assert self._ready.wait(30)
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self.error = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with served(self._settings) as service:
            self.service = service
            self._ready.set()
            await self._over.wait()
            await service.engine.end_all()

    def close(self) -> None:
        assert self._loop is not None
        assert self._over is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(30)
        if self.error is not None:
            raise self.error


@pytest.fixture(scope="module")
def served_once(data_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    data = tmp_path_factory.mktemp("served") / "data"
    shutil.copytree(data_template, data)
    settings = Settings(
        data=data,
        token=TOKEN,
        port=0,
        runner_port=0,
        reconcile_s=0.1,
        min_free_disk_bytes=0,
        min_free_disk_share=0.0,
    )
    # The service's log must not mix with what the command prints: here both have the same standard output.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    thread = Served(settings)
    assert thread.service is not None
    yield thread.service
    thread.close()
    structlog.reset_defaults()


@pytest.fixture
def service(served_once: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The module's service, and the command pointed at it."""
    served_once.engine.behaviour = http_runner
    monkeypatch.setenv("BENCHYARD_URL", served_once.url)
    monkeypatch.setenv("BENCHYARD_TOKEN", TOKEN)
    return served_once


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    server = Server()
    server.start()
    yield server.url
    server.stop()
