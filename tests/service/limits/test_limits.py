"""Limits: runs beyond them wait and say so, money beyond them is not spent, requests are told when to come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.runs.scheduling.holder_limits import full
from orchestrator.settings import Settings
from tests.served import Service, served
from tests.service.accounts.people import AskingRunner, NotingProvider, Person, person

pytestmark = pytest.mark.anyio

MODEL = {"slug": "lab-m", "provider": "lab", "name": "m", "protocol": "openai_chat", "input_price": 1.0, "output_price": 1.0}


async def limit(service: Service, whose: str, **most: Any) -> None:
    answer = await service.client.put(f"/api/limits/{whose}", json=most)
    assert answer.status_code == 200, answer.text


async def start(who: Person, model: str = "demo-strong") -> httpx.Response:
    async with who.client() as client:
        return await client.post("/api/container-runs", json={"model_id": model, "sample_size": 1})


async def statuses(service: Service) -> list[str]:
    return [each["status"] for each in (await service.client.get("/api/container-runs")).json()["items"]][::-1]


async def test_runs_beyond_a_limit_wait_and_others_pass_them(new_settings: Callable[..., Settings]) -> None:
    runner = AskingRunner()
    runner.go.clear()
    settings = new_settings(max_instances=10, vcpu_capacity=1000, memory_capacity_mib=10**7)
    async with served(settings, engine=FakeEngine(behaviour=runner)) as service:
        ada, bob = await person(service, "Ada"), await person(service, "Bob")
        await limit(service, "everyone", runs_at_once=1)
        for who in (ada, ada, bob):
            assert (await start(who)).status_code == 202
            service.clock.advance(0.01)
        async with asyncio.timeout(15):
            while await statuses(service) != ["running", "pending", "running"]:
                await asyncio.sleep(0.02)
        fleet = (await service.client.get("/api/fleet")).json()
        assert "its user has 1 runs at once" in str(fleet["waiting"])
        await limit(service, str(ada.id), runs_at_once=3)
        await limit(service, "workspace", runs_at_once=3)
        assert (await start(bob)).status_code == 202
        async with asyncio.timeout(15):
            while await statuses(service) != ["running", "running", "running", "pending"]:
                await asyncio.sleep(0.02)
        assert "its workspace has 3 runs at once" in str((await service.client.get("/api/fleet")).json()["waiting"])
        runner.go.set()
        async with asyncio.timeout(15):
            while set(await statuses(service)) != {"completed"}:
                await asyncio.sleep(0.02)
        await service.engine.end_all()


def test_who_is_full() -> None:
    def row(workspace_id: int, whose: str, most: int | None) -> Any:
        return SimpleNamespace(workspace_id=workspace_id, whose=whose, runs_at_once=most)

    rows = [row(1, "everyone", 2), row(1, "7", None), row(1, "8", 1), row(2, "workspace", 3)]
    live = {(1, 6): 2, (1, 7): 50, (1, 8): 1, (1, 9): 1, (1, None): 99, (2, 6): 2, (2, None): 1, (3, 6): 99}
    found = full(rows, live)
    assert (dict(found.users), dict(found.workspaces)) == ({(1, 6): 2, (1, 8): 1}, {2: 3})
    assert found.why(1, 7) is None
    assert found.why(2, None) == "its workspace has 3 runs at once, which is its limit"


async def test_money_beyond_a_limit_is_not_spent(
    new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = AskingRunner()
    async with NotingProvider().served() as provider:
        monkeypatch.setenv("BENCHYARD_PROVIDER_LAB_BASE_URL", provider.url)
        async with served(new_settings(), engine=FakeEngine(behaviour=runner)) as service:
            await service.client.post("/api/models", json=MODEL)
            ada, bob = await person(service, "Ada"), await person(service, "Bob")
            # A call may cost $0.0015 at most and costs $0.002 in the end, since the provider says so.
            await limit(service, str(ada.id), spend_per_day_usd=0.002)
            run = (await start(ada, "lab-m")).json()["run_id"]
            await service.until(run, "completed")
            refused = await start(ada, "lab-m")
            assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMITED")
            assert "your limit of $0.00 a day is used up" in refused.json()["detail"]
            assert int(refused.headers["retry-after"]) == 15 * 3600  # the clock says nine in the morning
            other = (await start(bob, "lab-m")).json()["run_id"]
            await service.until(other, "completed")
            used = (await service.client.get("/api/limits")).json()
            assert used["workspace"]["spent_today_usd"] == pytest.approx(0.004)
            async with ada.client() as client:
                mine = (await client.get("/api/limits")).json()["mine"]
            assert (mine["spent_today_usd"], mine["limit"]["spend_per_day_usd"]) == (pytest.approx(0.002), 0.002)
            # The workspace's counts for all of it; what is under way is stopped by the ledger, call by call.
            await limit(service, "workspace", spend_per_day_usd=0.005)
            last = (await start(bob, "lab-m")).json()["run_id"]
            ended = await service.until(last, "completed", "failed")
            assert runner.answers[-1].status_code == 402
            assert "the budget of the workspace for the day" in runner.answers[-1].text
            assert ended["cost_usd"] == 0
            service.clock.advance(16 * 3600)
            assert (await start(ada, "lab-m")).status_code == 202
            assert len(provider.keys) >= 2
            await service.engine.end_all()


async def test_requests_beyond_a_limit_are_told_when_to_come_back(service: Service) -> None:
    ada, bob = await person(service, "Ada"), await person(service, "Bob")
    await limit(service, "everyone", requests_per_second=2)
    async with ada.client() as client:
        answers = [await client.get("/api/models") for _ in range(12)]
        assert [each.status_code for each in answers] == [200] * 10 + [429] * 2
        assert (answers[-1].headers["retry-after"], answers[-1].json()["code"]) == ("1", "RATE_LIMITED")
        assert answers[-1].headers["content-type"] == "application/problem+json"
        service.clock.advance(1)
        assert [(await client.get("/api/models")).status_code for _ in range(3)] == [200, 200, 429]
    async with bob.client() as client:
        assert (await client.get("/api/models")).status_code == 200
        await limit(service, "workspace", requests_per_second=1)
        assert [(await client.get("/api/models")).status_code for _ in range(9)].count(200) == 9
        assert (await client.get("/api/models")).status_code == 429
    assert (await service.client.get("/api/models")).status_code == 200, "the installation's own token is not limited"
    assert (await service.client.delete("/api/limits/everyone")).status_code == 204
    assert (await service.client.delete("/api/limits/everyone")).status_code == 404


async def test_who_may_set_limits(service: Service) -> None:
    member, admin = await person(service, "Mem"), await person(service, "Adm", role="admin")
    far = await person(service, "Far", role="admin", workspace="elsewhere")
    for who, whose, status in [
        (member, "everyone", 403),
        (admin, "everyone", 200),
        (admin, str(member.id), 200),
        (admin, str(far.id), 404),
        (admin, "workspace", 403),
        (admin, "nonsense", 422),
    ]:
        async with who.client() as client:
            answer = await client.put(f"/api/limits/{whose}", json={"runs_at_once": 2})
        assert answer.status_code == status, (who.name, whose, answer.text)
    async with far.client() as client:
        assert (await client.get("/api/limits")).json()["items"] == []
    async with member.client() as client:
        assert [each["name"] for each in (await client.get("/api/limits")).json()["items"]] == ["Mem", "each user"]
