"""A further process of the gateway, started by `serving.gateway_processes`: answers model calls on the runner listener's
port and passes everything else on to the process that started it. Ends when that ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from contextlib import AsyncExitStack

from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.accounts.vault import load_vault
from orchestrator.accounts.wiring import open_accounts
from orchestrator.db.session import Database, database_url
from orchestrator.gateway.edge.router import Gateway
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.wiring import abandon_ended, open_gateway
from orchestrator.http.access.guard import Guard
from orchestrator.http.policy import MODEL_CALLS, set_policy
from orchestrator.http.problems import not_found
from orchestrator.http.route_table import RouteTable
from orchestrator.metrics.otlp import open_telemetry
from orchestrator.providers.wiring import open_providers
from orchestrator.runs.live.feed import Live
from orchestrator.runs.queueing.plan import PositionCache
from orchestrator.serving.gateway_processes import READY, shared_socket
from orchestrator.serving.passing_on import PassOn
from orchestrator.serving.runner_listener import QuietServer, server_config
from orchestrator.settings import Settings
from orchestrator.system import event_loop
from orchestrator.system.clock import SystemClock
from orchestrator.system.files import only_for_owner
from orchestrator.system.log import LOG_FILE, FollowedLog, configure

STARTER_GONE = 3


async def serve(settings: Settings, *, owner: str, host: str, port: int, pass_on: str) -> None:
    clock, data_dir = SystemClock(), settings.data.absolute()
    async with AsyncExitStack() as stack:
        telemetry = open_telemetry(os.environ)
        stack.push_async_callback(asyncio.to_thread, telemetry.close)
        db = Database(database_url(settings.database_url.get_secret_value() if settings.database_url else None, data_dir))
        stack.push_async_callback(db.close)
        live = Live(db)
        await live.start()
        stack.push_async_callback(live.close)
        master_key = settings.master_key.get_secret_value() if settings.master_key else None
        vault, directory = load_vault(master_key, settings.master_key_file, data_dir), ProviderDirectory(os.environ)
        providers = await stack.enter_async_context(open_providers(db, clock, vault, directory, data_dir))
        accounts = await stack.enter_async_context(open_accounts(settings, db, clock, vault, directory))
        gateway = await stack.enter_async_context(
            open_gateway(settings, db, clock, owner, accounts.keys, PositionCache(), providers.book, telemetry)
        )
        stack.callback(asyncio.create_task(abandon_ended(live, gateway)).cancel)
        others = PassOn(pass_on)
        stack.push_async_callback(others.close)
        mount, routes = Mount("/gateway", not_found), RouteTable(settings)
        set_policy(mount, MODEL_CALLS)
        routes.read([mount])
        server = QuietServer(server_config(_split(Guard(Gateway(gateway, others), routes=routes), others), host, port))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
        serving = asyncio.create_task(server.serve(sockets=[shared_socket(host, port)]))
        while not server.started and not serving.done():  # noqa: ASYNC110 -- uvicorn has no event for it
            await asyncio.sleep(0.01)
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        await serving


def _split(gateway: ASGIApp, others: ASGIApp) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (gateway if scope["path"].startswith("/gateway/") else others)(scope, receive, send)

    return app


def _end_with_starter() -> None:
    """What this process has at a provider is then lost, as it is of the one that was killed; the ledger knows."""
    while os.read(0, 1):  # the interpreter's own reader would hold a lock at the end
        pass
    os._exit(STARTER_GONE)


def main() -> None:
    settings, told = Settings(), json.loads(sys.argv[1])
    configure(settings.log_level)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    only_for_owner()
    FollowedLog(settings.data.absolute() / LOG_FILE).start()
    threading.Thread(target=_end_with_starter, name="starter", daemon=True).start()
    event_loop.run(serve(settings, owner=told["owner"], host=told["host"], port=told["port"], pass_on=told["pass_on"]))


if __name__ == "__main__":
    main()
