"""Archives through the API: from the disk, and made anew while they are read; the same bytes either way."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from tests.served import Service

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
