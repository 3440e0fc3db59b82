"""Archives through the API: from the disk, and made anew while they are read; the same bytes either way."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from orchestrator.archives import routes as archives
from orchestrator.engines.fake.container import FakeContainer
from tests.served import Service, http_runner

pytestmark = pytest.mark.anyio


async def test_an_archive_is_served_from_the_disk_or_made_anew(service: Service) -> None:
    service.engine.behaviour = lambda container: container.terminate.wait()
    waiting = await service.new_run()
    early = await service.client.get(f"/api/container-runs/{waiting}/archive")
    assert early.status_code == 409
    await service.client.post(f"/api/container-runs/{waiting}/cancel")
    await service.until(waiting, "cancelled", timeout_s=60)
    async with asyncio.timeout(60):
        while ((await service.run(waiting))["archive"] or {}).get("state") != "stored":
            await asyncio.sleep(0.1)
    facts = (await service.run(waiting))["archive"]
    assert (facts["kind"], facts["place"], facts["tries"], facts["error"]) == ("error", "disk", 0, None)
    stored = await service.client.get(f"/api/container-runs/{waiting}/archive")
    assert hashlib.sha256(stored.content).hexdigest() == facts["sha256"] == stored.headers["etag"].strip('"')
    assert stored.headers["content-disposition"] == f'attachment; filename="{waiting}-error.tar.gz"'
    (service.settings.data / "archives" / waiting / "error.tar.gz").unlink()
    anew = await service.client.get(f"/api/container-runs/{waiting}/archive")
    assert anew.content == stored.content
    assert (await service.client.get("/api/container-runs/nope/archive")).status_code == 404


async def test_it_waits_for_what_the_container_says_last_but_not_for_ever(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()

    async def lingers(container: FakeContainer) -> int:
        code = await http_runner(container)
        await go_on.wait()
        return code

    service.engine.behaviour = lingers
    made = await service.client.post("/api/batches", json={"models": ["demo-strong"], "sample_size": 1})
    batch_id = made.json()["batch_id"]
    group = (await service.client.get(f"/api/batches/{batch_id}")).json()["instance_types"][0]
    run_id = group["members"][0]["run_id"]
    await service.until(run_id, "completed")
    paths = (f"/api/container-runs/{run_id}/archive", f"/api/batches/{batch_id}/archive")
    with monkeypatch.context() as patched:
        patched.setattr(archives, "GONE_WITHIN_S", 0)
        early = [(await service.client.get(path)).content for path in paths]
    asked = [asyncio.create_task(service.client.get(path)) for path in paths]
    await asyncio.sleep(0)
    go_on.set()
    found = [(await each).content for each in asked]
    async with asyncio.timeout(60):
        while (await service.run(run_id))["archive"]["state"] != "stored":
            await asyncio.sleep(0.1)
    assert found == [(await service.client.get(path)).content for path in paths]
    assert early[0] != found[0]
    assert early[1] != found[1]
