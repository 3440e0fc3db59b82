"""The listener for runners, when the service ends while it is being opened."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest
from fastapi import FastAPI

from orchestrator.serving.runner_listener import RunnerListener

pytestmark = pytest.mark.anyio


async def listen() -> str:
    return "127.0.0.1"


@pytest.mark.parametrize("turns", range(12))
async def test_nothing_stays_open_if_opening_is_cancelled(turns: int) -> None:
    listener = RunnerListener(port=0, listen=listen, public_host=None)
    listener.app = FastAPI()
    opening = asyncio.create_task(listener.ensure())
    for _ in range(turns):
        await asyncio.sleep(0)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    await listener.close()
    del opening, listener
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await asyncio.sleep(0)
        gc.collect()
    assert [str(warning.message) for warning in caught if "unclosed" in str(warning.message)] == []
