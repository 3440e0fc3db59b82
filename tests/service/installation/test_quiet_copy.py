"""A whole service on a copied data directory: it says what it is, fires nothing, and leaves the original's runs alone."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable

import pytest

from orchestrator.engines.fake.container import until_terminated
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.settings import Settings
from tests.served import http_runner, served

pytestmark = pytest.mark.anyio


async def test_a_copy_is_quiet_until_it_is_adopted(new_settings: Callable[..., Settings]) -> None:
    settings = new_settings("original")
    held_engine = FakeEngine(behaviour=until_terminated)
    async with served(settings, engine=held_engine) as original:
        schedule = {"model_id": "demo-strong", "cron_expression": "*/10 * * * *", "sample_size": 3}
        assert (await original.client.post("/api/schedules", json=schedule)).status_code == 201
        waiting = await original.new_run()
        await original.until(waiting, "starting")
        copy_settings = settings.model_copy(update={"data": settings.data.with_name("copy")})
        shutil.copytree(settings.data, copy_settings.data)

        engine = FakeEngine(behaviour=http_runner)
        async with served(copy_settings, engine=engine) as copy:
            ready = (await copy.client.get("/readyz")).json()
            assert ready["copy_of"]["instance"] == original.services.installation.instance
            assert "This is a copy of the installation" in (await copy.client.get("/runs")).text
            copy.clock.advance(3600)
            done = await copy.new_run()
            assert (await copy.until(done, "completed", "failed"))["status"] == "completed"
            copy.services.signals.look()
            await asyncio.sleep(1.5)  # a ticker would have fired the schedule by now
            assert (await copy.run(waiting))["status"] == "starting", "nothing was concluded of the original's run"
            assert "belongs to the original" in (await copy.run(waiting))["waiting_for"]
            assert "Held: it belongs to the original" in (await copy.client.get("/runs")).text
            refused = await copy.client.post(f"/api/container-runs/{waiting}/cancel")
            assert refused.status_code == 409
            assert "until it is adopted" in refused.json()["detail"]
            fires = (await copy.client.get("/api/schedules/demo-strong/fires")).json()["items"]
            assert fires == []
            assert waiting not in {name.split("benchyard-run-")[-1][:36] for _, name in engine.calls if name}
        assert (await original.run(waiting))["status"] == "starting"
        await held_engine.end_all()
