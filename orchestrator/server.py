"""Runs the service: one uvicorn server that ends open streams when it is told to stop, so that a stop is quick."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from orchestrator import event_loop
from orchestrator.app import create_app
from orchestrator.log import configure
from orchestrator.runner_door import server_config
from orchestrator.settings import Settings


class Server(uvicorn.Server):
    """uvicorn waits for open streams at SIGTERM; we end them first."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        services = getattr(self._app.state, "services", None)
        if services is not None:
            services.live.end_streams()
        super().handle_exit(sig, frame)


def serve(settings: Settings) -> int:
    """Serve until told to stop; the exit code."""
    configure(settings.log_level)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    app = create_app(settings)
    config = server_config(app, settings.host, settings.port)
    config.lifespan = "on"
    server = Server(config, app)
    if app.state.login_link:  # only at the first start: later ones find the token in the data directory
        sys.stderr.write(f"Benchyard is new here. Sign in once with this link: {app.state.login_link}\n")
    event_loop.run(server.serve())
    if not server.started:
        sys.stderr.write("benchyard: the service could not start; the lines above say why\n")
        return 1
    return 0
