"""Keys and tokens are in clear nowhere: not in the database, files, logs, events, errors, answers or archives. What a
container is started with is looked at in tests/faults."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from orchestrator.accounts import queries as account_queries
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.http.access.authentication import COOKIE
from orchestrator.settings import Settings
from orchestrator.sign_in.claims import Identity
from orchestrator.sign_in.oidc import TokenGrant
from orchestrator.system.zstd import decompress
from tests.served import Service, served
from tests.service.accounts.people import AskingRunner, NotingProvider, person

pytestmark = pytest.mark.anyio

SYSTEM, SHARED, OWN = "sk-canary-system-0001", "sk-canary-shared-0002", "sk-canary-own-0003"
ACCESS, REFRESH, ID = "canary-access-0004", "canary-refresh-0005", "canary-id-0006"
MODEL = {"slug": "lab-m", "provider": "lab", "name": "m", "protocol": "openai_chat", "input_price": 1.0, "output_price": 1.0}
ZSTD = b"\x28\xb5\x2f\xfd"


def dump(database: Path) -> str:
    """Every column of every table as text, compressed ones opened."""
    connection = sqlite3.connect(database)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    connection.close()

    def readable(value: Any) -> str:
        raw = decompress(value) if value[:4] == ZSTD else value
        return raw.decode("latin-1")

    return json.dumps(rows, default=readable)


async def told(service: Service, run_ids: list[str], own: httpx.AsyncClient) -> dict[str, str]:
    """What every GET says: to who may see everything, and about the runs also to their own user."""
    found = {}
    for route in iter_route_contexts(service.app.routes):
        path = (route.path or "").replace("{position}", "0").replace("{model:path}", "lab-m")
        if "GET" not in (route.methods or ()) or path.startswith(("/login", "/logout")) or path == "/api/events":
            continue
        for each in [path.replace("{run_id}", run_id) for run_id in run_ids] if "{run_id}" in path else [path]:
            for client in (service.client, own) if "{" not in each else ():
                answer = await client.get(each)
                found[f"{each} {client is own}"] = f"{answer.text} {answer.headers}"
    return found


async def run(service: Service, client: httpx.AsyncClient) -> str:
    made = await client.post("/api/container-runs", json={"model_id": "lab-m", "sample_size": 1})
    run_id: str = made.json()["run_id"]
    await service.until(run_id, "completed", "failed")
    return run_id


async def test_no_secret_is_anywhere_in_clear(
    new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    runner, places, run_ids = AskingRunner(), {}, []
    async with NotingProvider().served() as provider:
        monkeypatch.setenv("BENCHYARD_PROVIDER_LAB_BASE_URL", provider.url)
        monkeypatch.setenv("BENCHYARD_PROVIDER_LAB_API_KEY", SYSTEM)
        settings = new_settings(oidc_model_scope="models", oidc_model_provider="lab")
        async with served(settings, engine=FakeEngine(behaviour=runner)) as service:
            ada = await person(service, "Ada")
            await service.client.post("/api/models", json=MODEL)
            signed_in = await service.stranger.post("/login", data={"token": ada.token})
            cookie = signed_in.cookies[COOKIE]
            page = httpx.AsyncClient(base_url=service.url, headers={"cookie": f"{COOKIE}={cookie}"}, timeout=60)
            async with page, ada.client() as client:
                people = service.services.accounts.sessions
                user = await service.services.db.read(lambda session: account_queries.user(session, ada.id))
                assert user is not None
                granted = TokenGrant(Identity("test", "Ada", "", "Ada"), None, ACCESS, REFRESH, ID, frozenset({"models"}))
                session_cookie = await people.begin(user, granted, agent="", address="")
                ours: list[tuple[httpx.AsyncClient, int]] = []
                for holder, key, by in (("workspace", SHARED, service.client), ("user", OWN, client)):
                    made = await by.post("/api/keys", json={"provider": "lab", "key": key, "holder": holder})
                    ours.append((by, made.json()["id"]))
                    wrong = await by.post("/api/keys", json={"provider": "lab", "key": f"{key} ä", "holder": holder})
                    places[f"a wrong {holder} key"] = wrong.text
                for payer in (OWN, ACCESS, SHARED, SYSTEM):
                    await run(service, client)
                    assert provider.keys[-1] == payer
                    provider.refuse.add(payer)  # now it fails, and the provider says the key back
                    run_ids.append(await run(service, client))
                    if payer == ACCESS:
                        places["the database of a signed-in user"] = dump(settings.data / "benchyard.db")
                        await people.end_all(ada.id)
                    elif ours:
                        by, number = ours.pop()
                        assert (await by.delete(f"/api/keys/{number}")).status_code == 204
                places |= await told(service, run_ids, page)
            places["what runners were told"] = " ".join(answer.text for answer in runner.answers)
            places["the database"] = dump(settings.data / "benchyard.db")
            async with asyncio.timeout(60):
                while len(list(settings.data.rglob("*.tar.gz"))) < 8:
                    await asyncio.sleep(0.05)
            await service.engine.end_all()
    for file in settings.data.rglob("*"):
        if file.is_file():
            raw = file.read_bytes()
            places[str(file)] = (gzip.decompress(raw) if file.suffix == ".gz" else raw).decode("latin-1")
    output = capfd.readouterr()
    places["the log"] = output.out + output.err
    secrets = {SYSTEM, SHARED, OWN, ACCESS, REFRESH, ID, ada.token, cookie, session_cookie}
    assert len(places) > 80
    assert {(place, secret) for place, text in places.items() for secret in secrets if secret in text} == set()
