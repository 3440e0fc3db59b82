"""Runs the service: a uvicorn server that closes open streams when told to stop, so that stopping is quick."""

from __future__ import annotations

import contextlib
import signal
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.app import create_app
from orchestrator.serving.runner_listener import server_config
from orchestrator.settings import Settings
from orchestrator.startup import CannotStart
from orchestrator.system import event_loop
from orchestrator.system.files import only_for_owner
from orchestrator.system.log import LOG_FILE, LogRotation, configure


class Server(uvicorn.Server):
    """uvicorn waits for open streams at SIGTERM; this server ends them first."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        services = getattr(self._app.state, "services", None)
        if services is not None:
            services.live.end_streams()
        super().handle_exit(sig, frame)


def serve(settings: Settings) -> int:
    """Serve until told to stop; returns the exit code."""
    configure(settings.log_level)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    only_for_owner()
    try:
        app = create_app(settings)
    except CannotStart as error:
        return _refuse(error)
    config = server_config(_without_traceback(app), settings.host, settings.port)
    config.lifespan = "on"
    server = Server(config, app)
    if app.state.login_link:  # only at the first start: later ones find the token in the data directory
        sys.stderr.write(f"Benchyard is new here. Sign in once with this link: {app.state.login_link}\n")
    rotation = LogRotation(
        settings.data.absolute() / LOG_FILE, max_bytes=settings.log_max_bytes, keep=settings.log_files_kept
    )
    rotation.start()
    with contextlib.suppress(SystemExit):  # raised by uvicorn if it did not start
        event_loop.run(server.serve())
    rotation.close()
    if (reason := getattr(app.state, "cannot_start", None)) is not None:
        return _refuse(reason)
    if not server.started:
        sys.stderr.write("benchyard: the service could not start; the lines above say why\n")
        return 1
    return 0


def _refuse(error: CannotStart) -> int:
    sys.stderr.write(f"benchyard: {error}\n")
    return error.exit_code


def _without_traceback(app: FastAPI) -> ASGIApp:
    """Hide uvicorn's traceback if the application itself says why it cannot start."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_startup(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed" and hasattr(app.state, "cannot_start"):
                message = {"type": "lifespan.startup.failed"}
            await send(message)

        await app(scope, receive, send_startup if scope["type"] == "lifespan" else send)

    return wrapped
