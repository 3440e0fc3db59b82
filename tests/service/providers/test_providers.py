"""Providers that are added, changed, tried and removed while the service runs, over HTTP."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.settings import Settings
from tests.served import PATIENCE_S, Service, served
from tests.service.accounts.people import AskingRunner, NotingProvider
from tests.service.gateway.cloud_servers import ACCESS, SECRET, SESSION, Bedrock, Google
from tests.service.gateway.gateway_server import serving
from tests.service.providers.strict_lab import StrictLab

pytestmark = pytest.mark.anyio

KEY, HEADER, LOGIN = "sk-canary-provider-0001", "canary-header-0002", "canary-proxy-0003"
MODEL = {"slug": "lab-m", "provider": "lab", "name": "m", "protocol": "openai_chat", "input_price": 1.0, "output_price": 1.0}


@pytest.fixture
async def service(new_settings: Callable[..., Settings], anyio_backend: str) -> AsyncIterator[Service]:
    async with served(new_settings(), engine=FakeEngine(behaviour=AskingRunner())) as service:
        yield service


async def add(service: Service, name: str = "lab", **fields: Any) -> dict[str, Any]:
    answer = await service.client.post("/api/providers", json={"name": name, "allow_private": True, **fields})
    assert answer.status_code == 201, answer.text
    added: dict[str, Any] = answer.json()
    return added


async def test_a_provider_is_added_used_moved_and_removed_without_a_restart(service: Service) -> None:
    async with NotingProvider().served() as first, NotingProvider().served() as second:
        shown = await add(service, base_url=first.url, key=KEY, headers={"x-team": HEADER})
        assert (shown["source"], shown["key"], shown["key_hint"], shown["headers"]) == (
            "stored",
            "vault",
            "0001",
            ["x-team"],
        )
        await service.client.post("/api/models", json=MODEL)
        run_id = await service.new_run(model_id="lab-m", sample_size=1)
        assert (await service.until(run_id, "completed", "failed"))["status"] == "completed"
        assert first.keys == [KEY]

        moved = await service.client.patch("/api/providers/lab", json={"base_url": second.url})
        assert moved.status_code == 422
        assert "key: it was given for" in moved.json()["detail"]
        moved = await service.client.patch(
            "/api/providers/lab", json={"base_url": second.url, "key": "k-2", "headers": None}
        )
        assert moved.status_code == 200, moved.text
        run_id = await service.new_run(model_id="lab-m", sample_size=1)
        await service.until(run_id, "completed", "failed")
        assert (first.keys, second.keys) == ([KEY], ["k-2"])

        assert (await service.client.delete("/api/providers/lab")).status_code == 204
        run_id = await service.new_run(model_id="lab-m", sample_size=1)
        await service.until(run_id, "completed", "failed")
        assert len(second.keys) == 1
        assert (await service.client.get("/api/providers/lab")).status_code == 404


async def test_another_process_on_the_same_database_notices(new_settings: Callable[..., Settings]) -> None:
    settings = new_settings()
    async with served(settings, engine=FakeEngine(behaviour=AskingRunner())) as service:
        directory = service.services.providers.service.directory
        await add(service, base_url="http://127.0.0.1:1/v1")
        with sqlite3.connect(settings.data / "benchyard.db") as connection:  # as another process would
            connection.execute("UPDATE providers SET revision = 'other', settings = replace(settings, ':1/v1', ':2/v1')")
        async with asyncio.timeout(PATIENCE_S):
            while directory.current["lab"].base_url != "http://127.0.0.1:2/v1":
                await asyncio.sleep(0.05)


async def test_the_test_says_what_the_server_understood_and_it_is_remembered(new_settings: Callable[..., Settings]) -> None:
    settings = new_settings()
    async with StrictLab().served() as lab:
        async with served(settings) as service:
            await add(service, base_url=lab.url, key=KEY, headers={"x-team": HEADER})
            await service.client.post("/api/models", json=MODEL)
            found = (await service.client.post("/api/providers/lab/test", json={})).json()
            assert found["ok"], found
            assert found["summary"] == (
                "lists 2 models; streams; answers in one piece too; takes max_tokens; takes stream_options; "
                "refuses temperature; this was learned now and is remembered; reports usage; keeps the token limit"
            )
            assert (found["model"], found["output_tokens"]) == ("m", 32)
            assert {headers["x-team"] for headers in lab.headers} == {HEADER}
            assert lab.lists[0]["authorization"] == f"Bearer {KEY}"
            learned = (await service.client.get("/api/providers/lab")).json()["learned"]
            assert [(each["model"], each["form"]) for each in learned] == [("m", ["max_tokens", "no_temperature"])]
            assert len((await service.client.get("/api/models/lab-m")).json()["notes"]) == 2
            async with asyncio.timeout(PATIENCE_S):
                while not learned_rows(settings.data):
                    await asyncio.sleep(0.02)
        asked = len(lab.bodies)
        async with served(settings) as service:  # after a restart, the first request is in the right form
            found = (await service.client.post("/api/providers/lab/test", json={"model": "lab-m"})).json()
            assert found["ok"]
            assert len(lab.bodies) == asked + 2
            forgotten = await service.client.delete("/api/providers/lab/learned", params={"model": "m"})
            assert forgotten.json() == {"forgotten": 1}
            assert (await service.client.get("/api/models/lab-m")).json()["notes"] == []
            assert (await service.client.post("/api/providers/lab/test", json={"model": "m"})).json()["ok"]
            assert len(lab.bodies) == asked + 2 + 4


async def test_a_limit_that_is_ignored_is_said(service: Service) -> None:
    async with StrictLab(refused=(), tokens=300).served() as lab:
        await add(service, base_url=lab.url)
        found = (await service.client.post("/api/providers/lab/test", json={"model": "m"})).json()
        assert "ignores the token limit: it gave 300 tokens where 16 were allowed" in found["summary"]


async def test_a_server_that_is_not_there_is_said(service: Service) -> None:
    await add(service, base_url="http://127.0.0.1:1/v1")
    found = (await service.client.post("/api/providers/lab/test", json={"model": "m"})).json()
    assert not found["ok"]
    assert "m gives no answer" in found["summary"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"base_url": "http://127.0.0.1:9/v1"}, "allow_private: the base URL is on this machine"),
        ({"base_url": "http://10.0.0.1/v1"}, "may not be called: it is a private address"),
        ({"base_url": "http://169.254.169.254/v1", "allow_private": True}, "link-local or metadata"),
        ({"base_url": "ftp://x.example"}, "must be an http or https address"),
        ({"base_url": "https://u:p@x.example"}, "no user, query or fragment"),
        ({"kind": "nonsense"}, "there is no kind nonsense"),
        ({}, "have no common address"),
        ({"kind": "openai", "key": "k", "key_variable": "V"}, "not several of them"),
        ({"kind": "openai", "key_variable": "BENCHYARD_MASTER_KEY"}, "holds a key of a provider"),
        ({"kind": "openai", "key_file": "keys/openai"}, "give the whole path"),
        ({"kind": "openai", "headers": {"host": "x"}}, "cannot be set"),
        ({"kind": "openai", "headers": {"x-a": "a\r\nb: c"}}, "characters that a header cannot have"),
        ({"kind": "openai", "proxy": "socks5://x"}, "socks5 proxy cannot be used"),
        ({"kind": "openai", "ca_bundle": "/nowhere.pem"}, "cannot be used"),
        ({"kind": "openai", "client_cert": "/nowhere.pem"}, "client certificate /nowhere.pem cannot be used"),
        ({"kind": "openai", "list_path": "models"}, "must begin with a slash"),
        ({"kind": "openai", "protocols": ["anthropic", "openai_chat"]}, "need a provider each"),
        ({"kind": "openai", "name": "demo"}, "demo and kinds are taken"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_reason(
    shared_service: Service, fields: dict[str, Any], words: str
) -> None:
    answer = await shared_service.client.post("/api/providers", json={"name": "bad", **fields})
    assert answer.status_code == 422
    assert words in answer.json()["detail"]


async def test_a_file_of_the_service_is_no_key(shared_service: Service) -> None:
    file = str(shared_service.settings.data / "master_key")
    answer = await shared_service.client.post("/api/providers", json={"name": "x", "kind": "openai", "key_file": file})
    assert "data directory" in answer.json()["detail"]


async def test_providers_of_the_environment_are_shown_and_left_alone(
    new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHYARD_PROVIDER_LAB_BASE_URL", "https://lab.example/v1")
    monkeypatch.setenv("BENCHYARD_PROVIDER_LAB_API_KEY", KEY)
    async with served(new_settings()) as service:
        listed = await service.client.get("/api/providers")
        assert KEY not in listed.text
        by_name = {each["name"]: each for each in listed.json()["items"]}
        assert (by_name["lab"]["source"], by_name["openai"]["source"]) == ("environment", "built_in")
        assert by_name["lab"]["key_variable"] == "BENCHYARD_PROVIDER_LAB_API_KEY"
        for answer in (
            await service.client.post("/api/providers", json={"name": "lab", "kind": "openai"}),
            await service.client.patch("/api/providers/lab", json={"kind": "vllm"}),
            await service.client.delete("/api/providers/lab"),
        ):
            assert answer.status_code == 409, answer.text
            assert "environment variables" in answer.json()["detail"]
        await add(service, "openai", kind="openai", key=KEY)  # nothing in the environment configures it
        assert (await service.client.get("/api/providers/openai")).json()["source"] == "stored"


async def test_secrets_are_sealed_and_rotated(
    new_settings: Callable[..., Settings], capfd: pytest.CaptureFixture[str]
) -> None:
    settings = new_settings()
    async with served(settings) as service:
        shown = await add(
            service,
            base_url="http://127.0.0.1:1/v1",
            key=KEY,
            headers={"x-team": HEADER},
            proxy=f"http://u:{LOGIN}@127.0.0.1:2",
        )
        assert shown["proxy"] == "http://127.0.0.1:2"
        assert service.services.providers.service.directory.current["lab"].proxy == f"http://u:{LOGIN}@127.0.0.1:2"
        found = await service.client.post("/api/providers/lab/test", json={"model": "m"})
        page = await service.client.post("/providers/lab/test", data={"model": "m"})
        told = [found.text, page.text, str(shown)]
        told += [(await service.client.get(path)).text for path in ("/providers", "/api/providers", "/audit", "/api/audit")]
        assert (await service.client.post("/api/keys/rotate")).json() == {"sealed_again": 0, "unreadable": 0}
    files = [file.read_bytes().decode("latin-1") for file in settings.data.rglob("*") if file.is_file()]
    output = capfd.readouterr()
    for place in (*told, *files, output.out, output.err):
        for secret in (KEY, HEADER, LOGIN):
            assert secret not in place


async def test_a_row_that_was_copied_to_another_address_gives_no_key(service: Service) -> None:
    async with NotingProvider().served() as thief:
        await add(service, base_url="http://127.0.0.1:1/v1", key=KEY)
        address = thief.url.removesuffix("/v1")
        with sqlite3.connect(service.settings.data / "benchyard.db") as connection:
            connection.execute(
                "UPDATE providers SET revision = 'x', origin = ?, settings = replace(settings, 'http://127.0.0.1:1', ?)",
                (address, address),
            )
        await service.services.providers.service.refresh()
        found = (await service.client.post("/api/providers/lab/test", json={"model": "m"})).json()
        assert "cannot be read" in found["summary"]
        assert thief.keys == []


async def test_the_page_adds_changes_tests_and_removes(service: Service) -> None:
    async with StrictLab().served() as lab:
        fields = {"name": "lab", "base_url": lab.url, "key": KEY, "headers": f"x-team: {HEADER}"}
        refused = await service.client.post("/providers", data=fields)
        assert refused.status_code == 422
        assert KEY not in refused.text
        assert (await service.client.post("/providers", data={**fields, "allow_private": "on"})).status_code == 201
        change = {"base_url": lab.url, "allow_private": "on", "no_headers": "on", "list_without_key": "on"}
        assert (await service.client.post("/providers/lab", data=change)).status_code == 200
        tested = await service.client.post("/providers/lab/test", data={"model": "m"})
        assert "takes max_tokens" in tested.text
        assert "x-team" not in lab.headers[-1]
        assert lab.headers[-1]["authorization"] == f"Bearer {KEY}"
        assert "authorization" not in lab.lists[-1]
        assert "Learned from its server" in (await service.client.get("/providers")).text
        await service.client.post("/providers/lab/forget", data={"model": "m"})
        assert "Learned from its server" not in (await service.client.get("/providers")).text
        await service.client.post("/providers/lab/remove")
        assert (await service.client.get("/api/providers/lab")).status_code == 404


def learned_rows(data: Path) -> int:
    with sqlite3.connect(data / "benchyard.db") as connection:
        return int(connection.execute("SELECT count(*) FROM learned_forms").fetchone()[0])


async def test_keys_of_clouds_are_nowhere_in_clear(
    new_settings: Callable[..., Settings], capfd: pytest.CaptureFixture[str]
) -> None:
    """Access keys that a server repeats, and a service account's key with the token that it bought."""
    settings, vertex = new_settings(), Google({"type": "message"}, b"data: {}\n\n")
    told = []
    async with (
        serving(Bedrock({}, echo=True).app()) as amazon,
        serving(vertex.app()) as vertex.url,
        served(settings) as service,
    ):
        await add(service, "aws", kind="bedrock", base_url=amazon, key=f"{ACCESS}:{SECRET}:{SESSION}")
        base = f"{vertex.url}/v1/projects/p/locations/l/endpoints/openapi"
        await add(service, "gcp", kind="vertex", base_url=base, key=json.dumps(vertex.account, indent=2))
        for name in ("aws", "gcp"):
            told.append((await service.client.post(f"/api/providers/{name}/test", json={"model": "m"})).text)
        told += [(await service.client.get(path)).text for path in ("/providers", "/api/providers", "/api/audit")]
    assert "malformed" in told[0]
    assert len(vertex.sold) == 1
    files = [file.read_bytes().decode("latin-1") for file in settings.data.rglob("*") if file.is_file()]
    output = capfd.readouterr()
    secrets = [ACCESS, SECRET, SESSION, *vertex.sold, *vertex.account["private_key"].splitlines()[1:-1]]
    for place in (*told, *files, output.out, output.err):
        assert not [secret for secret in secrets if secret in place]
