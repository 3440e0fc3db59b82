"""A real service with the fake engine, on a thread of its own, for commands run in this process."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from orchestrator.settings import Settings
from tests.s3_server import Server
from tests.served import TOKEN, Service, http_runner, served
from tests.unit.cli.command_line import benchyard, clean_environment

__all__ = ["benchyard", "clean_environment"]


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
