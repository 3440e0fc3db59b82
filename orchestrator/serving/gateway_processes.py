"""Further processes that answer model calls on the runner listener's port, for a service whose gateway fills a core.

They share the port (SO_REUSEPORT: the kernel hands each connection to one of them) and nothing else: the ledger in
PostgreSQL is the only truth. This process starts them, starts those again that end, and stops them before it stops itself.
If it is killed, their standard input ends, and they end too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import sys
import tempfile
from pathlib import Path

import structlog
from starlette.types import ASGIApp

from orchestrator.serving.runner_listener import QuietServer, server_config

log = structlog.get_logger()

MODULE = "orchestrator.gateway_process"
AGAIN_S = (0.5, 1.0, 2.0, 5.0, 10.0)
STOP_S = 12.0
READY = b"ready\n"


class GatewayProcesses:
    """`count` is how many there are besides this one."""

    def __init__(self, count: int, owner: str) -> None:
        self._owner = owner
        self._pids: dict[int, int | None] = dict.fromkeys(range(2, count + 2))
        self._tasks: list[asyncio.Task[None]] = []
        self._server: QuietServer | None = None
        self._serving: asyncio.Task[None] | None = None
        self._folder: Path | None = None

    @property
    def pids(self) -> dict[int, int | None]:
        """By number; None while one is not ready."""
        return dict(self._pids)

    @property
    def trouble(self) -> str | None:
        missing = [number for number, pid in self._pids.items() if pid is None]
        return f"Gateway process {missing[0]} of {len(self._pids) + 1} is not up; the log says why." if missing else None

    async def listen_at(self, address: str, port: int, app: ASGIApp) -> None:
        """Have them at this address, which the caller listens at already, and pass to `app` what they do not answer."""
        if not self._pids:
            return
        await self._end()
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="benchyard-"))
            config = server_config(app, "", 0)
            config.uds = str(self._folder / "passed-on")
            self._server = QuietServer(config)
            self._serving = asyncio.create_task(self._server.serve())
            while not self._server.started and not self._serving.done():  # noqa: ASYNC110 -- uvicorn has no event for it
                await asyncio.sleep(0.01)
        path = str(self._folder / "passed-on")
        for number in self._pids:
            told = {"owner": f"{self._owner}/gateway-{number}", "host": address, "port": port, "pass_on": path}
            self._tasks.append(asyncio.create_task(self._keep(number, json.dumps(told))))

    async def close(self) -> None:
        await self._end()
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(self._serving, 5)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _keep(self, number: int, told: str) -> None:
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            code = await self._one(number, told)
            failures = 0 if asyncio.get_running_loop().time() - began > 60 else failures + 1
            pause_s = AGAIN_S[min(failures, len(AGAIN_S)) - 1] if failures else AGAIN_S[0]
            log.warning("gateway process ended", action="gateway_process_ended", number=number, code=code)
            await asyncio.sleep(pause_s)

    async def _one(self, number: int, told: str) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", MODULE, told, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            if await process.stdout.readline() == READY:
                self._pids[number] = process.pid
                log.info("gateway process ready", action="gateway_process_ready", number=number, pid=process.pid)
            return await process.wait()
        finally:
            self._pids[number] = None
            await asyncio.shield(_stop(process))


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def shared_socket(host: str, port: int) -> socket.socket:
    """A socket at an address that other processes of this user may listen at as well."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((host, port))
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)
    return listening
