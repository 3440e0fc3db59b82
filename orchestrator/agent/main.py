"""Assembles an agent and runs it: engine, listener for its containers, link to the orchestrator."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from contextlib import AsyncExitStack

import httpx
import structlog

from orchestrator.agent.link import Link, LinkLost, LinkRefused
from orchestrator.agent.listener import forwarding_app
from orchestrator.agent.loop import AgentLoop, AgentOptions
from orchestrator.engines.docker.cleanup import DockerCleanup
from orchestrator.engines.engine import Engine, EngineError, Unguarded
from orchestrator.engines.factory import choose_engine
from orchestrator.outbound.tls import tls_context
from orchestrator.serving.runner_listener import RunnerListener
from orchestrator.settings import Settings

log = structlog.get_logger()

REQUEST_S = httpx.Timeout(40.0, connect=10.0)
UPKEEP_S = 5.0
PASSED_ON_S = httpx.Timeout(None, connect=10.0)


async def run_agent(settings: Settings, url: str, token: str, options: AgentOptions) -> str | None:
    """Work until told to leave. Returns why it ended, if something went wrong."""
    async with AsyncExitStack() as stack:
        instance = f"agent-{options.agent_id}"
        choice = choose_engine(settings, instance, settings.data.absolute(), owner=options.agent_id)
        stack.push_async_callback(choice.engine.close)
        listener = RunnerListener(port=settings.effective_runner_port, listen=choice.listen, public_host=choice.public_host)
        stack.push_async_callback(listener.close)
        tls = tls_context()
        passing = await stack.enter_async_context(
            httpx.AsyncClient(base_url=url, timeout=PASSED_ON_S, limits=_limits(), verify=tls)
        )
        listener.app = forwarding_app(passing)
        headers = {"Authorization": f"Bearer {token}"}
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=url, headers=headers, timeout=REQUEST_S, verify=tls)
        )
        try:
            await _prepare(choice.engine)
            await listener.ensure()
        except EngineError as error:
            return f"the engine of this machine does not answer: {error}"
        if listener.error is not None:
            return listener.error
        loop = AgentLoop(
            choice.engine, Link(client, rng=random.Random(os.urandom(8))), options, door_url=lambda: listener.url
        )
        keeping = asyncio.create_task(_keep_reachable(choice.engine, listener))
        stack.callback(keeping.cancel)
        work = asyncio.create_task(loop.run())
        _obey_signals(loop, work)
        trouble = await _to_the_end(loop, work)
        keeping.cancel()
        if await _is_empty(choice.engine):
            await listener.close()
            if choice.engine.name == "docker":
                await asyncio.to_thread(_leave_nothing, settings.docker_host, instance, options.agent_id)
            else:
                with contextlib.suppress(EngineError):
                    await choice.engine.teardown()
        return trouble


async def _prepare(engine: Engine) -> None:
    """What only holds launches is no reason to leave: the loop claims nothing until it has changed."""
    with contextlib.suppress(Unguarded):
        await engine.prepare()


async def _keep_reachable(engine: Engine, listener: RunnerListener) -> None:
    """Recreate the runner network if it was removed, and move the listener to its address."""
    while True:
        await asyncio.sleep(UPKEEP_S)
        try:
            await _prepare(engine)
            await listener.ensure()
        except EngineError as error:
            log.warning("runners cannot reach this agent", action="agent_network", error=str(error))


async def _to_the_end(loop: AgentLoop, work: asyncio.Task[None]) -> str | None:
    trouble = None
    try:
        await work
        return None
    except asyncio.CancelledError:
        log.info("stopped", action="agent_stopped")
    except (LinkLost, LinkRefused, EngineError) as error:
        trouble = str(error)
    except ExceptionGroup as group:  # raised by the tasks that claim and report
        causes = [cause for cause in group.exceptions if isinstance(cause, LinkLost | LinkRefused)]
        if not causes:
            raise
        trouble = str(causes[0])
    await loop.stop_all()
    return trouble


async def _is_empty(engine: Engine) -> bool:
    """Whether there is no container of ours in any state."""
    with contextlib.suppress(EngineError):
        return not await engine.list()
    return False


def _leave_nothing(docker_host: str | None, instance: str, owner: str) -> None:
    """Remove our containers' network and its firewall rules; leftovers do no harm."""
    cleanup = DockerCleanup(docker_host)
    try:
        cleanup.sweep(cleanup.find(instance, owner))
    except EngineError as error:
        log.warning("not everything was removed", action="agent_left", error=str(error))
    finally:
        cleanup.close()


def _obey_signals(loop: AgentLoop, work: asyncio.Task[None]) -> None:
    """SIGINT: take no new work and let containers finish. A second SIGINT, or SIGTERM: stop the containers."""

    def interrupted() -> None:
        if loop.leaving.is_set():
            work.cancel()
        log.warning("leaving when what runs has ended; once more to stop it", action="agent_leaving")
        loop.leaving.set()

    running = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):
        running.add_signal_handler(signal.SIGINT, interrupted)
        running.add_signal_handler(signal.SIGTERM, work.cancel)


def _limits() -> httpx.Limits:
    return httpx.Limits(max_connections=None, max_keepalive_connections=50)
