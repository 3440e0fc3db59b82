"""Clears the engine when the service is stopped for good. Interrupted runs get another attempt at the next start and keep
all finished results."""

from __future__ import annotations

import asyncio

import structlog

from orchestrator.engines.engine import Engine, EngineError

log = structlog.get_logger()

AT_ONCE = 8


async def leave_nothing(engine: Engine) -> None:
    """Remove every container of this instance and what `prepare` made. Engine errors are only logged: the service must be
    able to stop."""
    at_once = asyncio.Semaphore(AT_ONCE)

    async def remove(name: str) -> None:
        async with at_once:
            try:
                await engine.remove(name)
            except EngineError as error:
                log.warning("container not removed", action="left_behind", container=name, error=str(error))

    try:
        names = [facts.name for facts in await engine.list()]
        await asyncio.gather(*(remove(name) for name in names))
        await engine.teardown()
        log.info("containers removed", action="left_nothing", containers=len(names))
    except EngineError as error:
        log.warning("engine not cleared", action="left_behind", error=str(error))
