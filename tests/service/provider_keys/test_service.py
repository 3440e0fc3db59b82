"""Whose key pays: the user's, the workspace's, the service's; each sent to its own provider only, and the ledger says it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlmodel import Session

from orchestrator.accounts.vault import Vault
from orchestrator.db.session import Database
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.gateway.edge.errors import GatewayError
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.provider_keys import queries as key_queries
from orchestrator.provider_keys.service import KeyPolicy, ProviderKeys
from orchestrator.settings import Settings
from tests.manual_clock import ManualClock
from tests.served import Service, served
from tests.service.accounts.people import AskingRunner, NotingProvider, Person, person

pytestmark = pytest.mark.anyio

SYSTEM_KEY = "sk-system-0123456789"
MODEL = {"slug": "lab-m", "provider": "lab", "name": "m", "protocol": "openai_chat", "input_price": 1.0, "output_price": 1.0}


@dataclass
class World:
    service: Service
    provider: NotingProvider
    runner: AskingRunner

    async def run_as(self, who: Person, *, until: str = "completed") -> list[dict[str, Any]]:
        """Start a run and return its calls as the API has them."""
        async with who.client() as client:
            made = await client.post("/api/container-runs", json={"model_id": "lab-m", "sample_size": 1})
            assert made.status_code == 202, made.text
            run_id = made.json()["run_id"]
            for _ in range(600):
                run = (await client.get(f"/api/container-runs/{run_id}")).json()
                if run["status"] in (until, "failed"):
                    break
                await asyncio.sleep(0.02)
            assert run["status"] == until, run
            calls: list[dict[str, Any]] = (await client.get(f"/api/container-runs/{run_id}/calls")).json()["items"]
            return calls


@pytest.fixture
async def world(
    new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> AsyncIterator[World]:
    async with NotingProvider().served() as provider:
        monkeypatch.setenv("BENCHYARD_PROVIDER_LAB_BASE_URL", provider.url)
        monkeypatch.setenv("BENCHYARD_PROVIDER_LAB_API_KEY", SYSTEM_KEY)
        runner = AskingRunner()
        async with served(new_settings(system_keys="owners"), engine=FakeEngine(behaviour=runner)) as service:
            assert (await service.client.post("/api/models", json=MODEL)).status_code == 201
            yield World(service, provider, runner)
            await service.engine.end_all()


async def give(who: Person, key: str, **fields: Any) -> int:
    async with who.client() as client:
        answer = await client.post("/api/keys", json={"provider": "lab", "key": key, **fields})
        assert answer.status_code in (200, 201), answer.text
        assert key not in answer.text
        assert answer.json()["hint"] == key[-4:]
        return int(answer.json()["id"])


async def test_the_users_own_then_the_workspaces_then_the_services(world: World) -> None:
    ada, bob = await person(world.service, "Ada"), await person(world.service, "Bob", role="admin")
    carl = await person(world.service, "Carl", workspace="elsewhere")
    # Members may not use the service's key here: there is nobody to pay.
    await world.run_as(ada, until="failed")
    assert world.runner.answers[-1].status_code == 401
    assert "enter your own" in world.runner.answers[-1].text
    assert world.provider.keys == []

    shared = await give(bob, "sk-workspace-aaaa", holder="workspace", name="shared")
    (call,) = await world.run_as(ada)
    assert (call["payer"], call["payer_name"], world.provider.keys[-1]) == ("workspace", "default", "sk-workspace-aaaa")
    own = await give(ada, "sk-adas-own-bbbb")
    (call,) = await world.run_as(ada)
    assert (call["payer"], call["payer_name"], world.provider.keys[-1]) == ("user", "Ada", "sk-adas-own-bbbb")
    # What a provider says back has the key in it no more, whoever's it is.
    assert "sk-adas-own-bbbb" not in world.runner.answers[-1].text
    (call,) = await world.run_as(bob)
    assert (call["payer"], world.provider.keys[-1]) == ("workspace", "sk-workspace-aaaa")
    # Another workspace has none of them, and sees none of them.
    await world.run_as(carl, until="failed")
    assert world.runner.answers[-1].status_code == 401
    async with carl.client() as client:
        assert (await client.get("/api/keys")).json()["items"] == []
        assert (await client.delete(f"/api/keys/{shared}")).status_code == 404
    async with bob.client() as client:
        assert [each["hint"] for each in (await client.get("/api/keys")).json()["items"]] == ["aaaa"]
        assert (await client.delete(f"/api/keys/{own}")).status_code == 404
    async with ada.client() as client:
        assert (await client.delete(f"/api/keys/{shared}")).status_code == 403
        assert (await client.delete(f"/api/keys/{own}")).status_code == 204
    (call,) = await world.run_as(ada)
    assert world.provider.keys[-1] == "sk-workspace-aaaa"
    # Whoever runs the installation pays with its key.
    run_id = await world.service.new_run(model_id="lab-m", sample_size=1)
    await world.service.until(run_id, "completed")
    assert world.provider.keys[-1] == "sk-workspace-aaaa"
    assert (await world.service.client.delete(f"/api/keys/{shared}")).status_code == 204
    run_id = await world.service.new_run(model_id="lab-m", sample_size=1)
    await world.service.until(run_id, "completed")
    assert world.provider.keys[-1] == SYSTEM_KEY


async def test_a_key_goes_to_the_place_it_was_given_for_and_cannot_be_moved(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await person(world.service, "Ada")
    async with ada.client() as client:
        for body, word in [
            ({"base_url": "https://evil.example/v1"}, "base_url"),
            ({"base_url": "ftp://x"}, "base_url"),
            ({"provider": "nothing"}, "provider"),
            ({"key": "kä" * 9}, "key"),
            ({"key": "short"}, "key"),
            ({"holder": "workspace"}, "admins"),
        ]:
            answer = await client.post("/api/keys", json={"provider": "lab", "key": "sk-0123456789", **body})
            assert answer.status_code in (403, 422), body
            assert word in answer.json()["detail"]
            assert "sk-0123456789" not in answer.text
    number = await give(ada, "sk-adas-own-bbbb", base_url=world.provider.url)
    assert await give(ada, "sk-adas-new-cccc") == number, "the new one takes the place of the old one"

    def point_elsewhere(session: Session) -> None:
        row = key_queries.get(session, number)
        assert row is not None
        assert "sk-adas" not in row.sealed
        row.user_id = 0  # as if it were the workspace's
        session.add(row)

    await world.service.services.db.write(point_elsewhere)
    await world.run_as(ada, until="failed")
    assert "cannot be opened" in world.runner.answers[-1].text
    assert world.provider.keys == []


async def nobody(user_id: int) -> str | None:
    return None


async def test_all_is_sealed_anew_with_a_new_master_key(database: Database, clock: ManualClock) -> None:
    env = {"BENCHYARD_PROVIDER_LAB_BASE_URL": "http://127.0.0.1:9/v1"}
    old, new = b"o" * 32, b"n" * 32

    def keys(*master: bytes) -> ProviderKeys:
        return ProviderKeys(database, clock, Vault(master), ProviderDirectory(env), KeyPolicy(), nobody)

    facts = {"name": "n", "provider": "lab", "base_url": None, "by": "me"}
    for user_id in (0, 7):
        await keys(old).put(secret=f"sk-0123456789-{user_id}", user_id=user_id, **facts)
    assert await keys(new).rotate() == (0, 2), "the old one is still needed"
    assert await keys(new, old).rotate() == (2, 0)
    assert await keys(new, old).rotate() == (0, 0)
    chosen = await database.read(lambda session: keys(new).choose(session, 1, 7, "lab"))
    provider = keys(new).providers["lab"]
    assert await keys(new).secret(chosen.payer, provider) == "sk-0123456789-7"
    with pytest.raises(GatewayError, match="BENCHYARD_MASTER_KEY"):
        await keys(old).secret(chosen.payer, provider)
    moved = replace(provider, base_url="https://elsewhere.example/v1")
    with pytest.raises(GatewayError, match="another address now"):
        await keys(new).secret(chosen.payer, moved)
