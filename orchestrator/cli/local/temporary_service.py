"""A service for one command: on a thread of this process, with its own database, instance and network, which are removed
afterwards. It reads the datasets of the data directory, and touches neither its runs nor its schedules.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection
from orchestrator.cli.errors import CliError
from orchestrator.cli.local import service_process
from orchestrator.cli.local.teardown import remove_instance, uses_docker
from orchestrator.settings import InstanceTypeSetting, Settings

READY_S = 120.0
STOP_S = 30.0
CORE_MIB = 1280
"""Memory per core, for a program and its sandbox."""
TYPE = "all-cores"
PREFIX = "local-"
YOUNG_S = 60.0
"""A younger directory may belong to a command that is just starting."""


@contextlib.contextmanager
def local_service(settings: Settings, engine: str | None = None) -> Iterator[Connection]:
    """Runs the service until the block ends."""
    data_dir = settings.data.absolute()
    (data_dir / "packs").mkdir(parents=True, exist_ok=True)
    sweep(settings)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=data_dir))
    own = own_settings(settings, folder, engine)
    try:
        (folder / "packs").symlink_to(data_dir / "packs")
        with _terminable():
            thread = _Thread(own)
            try:
                yield thread.connect()
            finally:
                thread.close()
                remove_instance(own)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(settings: Settings) -> None:
    """Removes the containers, network and directory of a killed command."""
    for folder in settings.data.absolute().glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, CliError):
            if time.time() - folder.stat().st_mtime > YOUNG_S and service_process.holder(folder) is None:
                remove_instance(settings.model_copy(update={"data": folder, "database_url": None}))
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP interrupt the command, so that it cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def own_settings(settings: Settings, folder: Path, engine: str | None) -> Settings:
    """The settings of this machine's service, on free ports and with the directory's name as the instance."""
    name = folder.name
    cores = os.cpu_count() or 1
    types = {**settings.instance_types, TYPE: InstanceTypeSetting(vcpu=cores, memory_mib=512 + CORE_MIB * cores, disk_gb=8)}
    return settings.model_copy(
        update={
            "host": "127.0.0.1",
            "port": 0,
            "public_url": None,
            "runner_port": _free_port(),
            "runner_url": None,
            "data": folder,
            "token": SecretStr(secrets.token_urlsafe(32)),
            "database_url": None,
            "engine": engine or settings.engine,
            "instance": name,
            "runner_network": f"benchyard-{name}",
            "instance_types": types,
            "max_instances": 1,
            "reconcile_s": min(settings.reconcile_s, 1.0),
            "log_level": "critical",
        }
    )


class _Thread:
    """The service on a thread with its own event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._port = 0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="local-service", daemon=True)
        self._thread.start()

    def connect(self) -> Connection:
        """Returns its address once it is ready."""
        if not self._ready.wait(READY_S) or self._error is not None:
            raise CliError(f"Grading could not be started here: {self._error or 'no answer in time'}")
        token = self._settings.token
        connection = Connection(f"http://127.0.0.1:{self._port}", token.get_secret_value() if token else None)
        deadline = time.monotonic() + READY_S
        with Client(connection) as client:
            while True:
                ready, why = client.is_ready()
                if ready:
                    return connection
                engine_ok = client.readiness().get("parts", {}).get("engine", {}).get("ok", True)
                if time.monotonic() > deadline - (0 if engine_ok else READY_S / 2):
                    hint = " `--engine process` does without Docker, less isolated." if uses_docker(self._settings) else ""
                    raise CliError(f"Nothing can be graded here now: {why or 'no answer'}.{hint}")
                time.sleep(0.1)

    def close(self) -> None:
        if self._loop is not None and self._over is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(STOP_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from orchestrator.app import create_app
        from orchestrator.serving.runner_listener import QuietServer, server_config
        from orchestrator.system.log import configure

        configure(self._settings.log_level)
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        app = create_app(self._settings)
        config = server_config(app, "127.0.0.1", 0)
        config.lifespan = "on"
        server = QuietServer(config)
        task = asyncio.create_task(server.serve())
        while not server.started and not task.done():  # noqa: ASYNC110 -- uvicorn has no event for it
            await asyncio.sleep(0.02)
        if task.done():
            raise CliError("the service did not start; the lines above say why")
        self._port = server.servers[0].sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        app.state.services.live.end_streams()
        server.should_exit = True
        await task


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])
