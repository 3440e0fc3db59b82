"""The agent as a whole: what it waits for at its start, and what it leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.agent import main
from orchestrator.agent.loop import AgentOptions
from orchestrator.engines.factory import EngineChoice
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.settings import Settings
from tests.served import Service, http_runner
from tests.service.agent.test_loop import OPTIONS, PATIENCE_S

pytestmark = pytest.mark.anyio


class Kept(FakeEngine):
    """Says what was asked of it."""

    checked = cleared = False

    async def check(self) -> None:
        self.checked = True
        await super().check()

    async def teardown(self) -> None:
        self.cleared = True


async def test_an_agent_waits_for_its_guard_and_leaves_nothing(
    service: Service, new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Kept("agent", behaviour=http_runner, cpus=1)
    engine.faults.unguarded = "The network policy is being probed."
    monkeypatch.setattr(main, "choose_engine", lambda *_, **__: EngineChoice.given(engine))
    made: dict[str, Any] = (await service.client.post("/api/tokens", json={"name": "far", "scope": "agent"})).json()
    work = asyncio.create_task(main.run_agent(new_settings(), service.url, made["token"], AgentOptions(**OPTIONS)))
    run_id = await service.new_run(provider="elsewhere")
    async with asyncio.timeout(PATIENCE_S):
        while not engine.checked:
            assert not work.done(), work
            await asyncio.sleep(0.02)
    engine.faults.unguarded = None
    assert (await service.until(run_id, "completed", timeout_s=PATIENCE_S))["attempt"] == 1
    (known,) = (await service.client.get("/api/agents")).json()["items"]
    await service.client.delete(f"/api/agents/{known['id']}")
    async with asyncio.timeout(PATIENCE_S):
        assert await work is None
    assert engine.cleared
