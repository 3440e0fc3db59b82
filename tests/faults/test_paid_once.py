"""Nothing is paid twice: calls at a provider that counts, while runner and orchestrator are killed at random moments."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.system.zstd import decompress
from tests.faults.conftest import StartService
from tests.faults.counting_provider import CountingProvider
from tests.faults.killing import MODEL, add_model, kill_a_lot, tables
from tests.faults.service import Service, docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]

CANARY = "sk-canary-" + os.urandom(12).hex()
"""In the settings of the service; nobody pays with it where the workspace has a key."""
GIVEN = "sk-canary-" + os.urandom(12).hex()
"""Given by an admin for the workspace."""
OTHERS = {
    "canary-claude": {"provider": "anthropic", "name": "counting"},
    "canary-responses": {"provider": "openai", "name": "counting-large", "protocol": "openai_responses"},
}
SEED = 20
ZSTD = b"\x28\xb5\x2f\xfd"


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingProvider]:
    """Configured as the providers `openai` and `anthropic` of every service that is started after it."""
    with CountingProvider(tmp_path / "provider.log", latency_s=0.4) as it:
        monkeypatch.setenv("OPENAI_BASE_URL", it.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", CANARY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", it.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
        yield it


def test_killed_again_and_again_every_answer_is_bought_once(
    provider: CountingProvider, start_service: StartService, database_url: str | None
) -> None:
    """Calls at the provider = distinct call keys + what was under way when the orchestrator was killed."""
    service = start_service()
    bought = kill_a_lot(
        service,
        provider,
        database_url,
        random.Random(SEED),
        problems=20,
        samples=2,
        concurrency=3,
        runner_kills=3,
        orchestrator_kills=2,
    )
    print(f"{bought.calls} calls at the provider, {bought.keys} call keys, {bought.lost} lost sends")


def test_the_providers_key_is_nowhere_but_at_the_provider(
    provider: CountingProvider, start_service: StartService, database_url: str | None
) -> None:
    service = start_service(log_level="debug")
    add_model(service)
    given = service.client.post("/api/keys", json={"provider": "openai", "key": GIVEN, "holder": "workspace"})
    token = service.client.post("/api/tokens", json={"name": "canary", "scope": "run"}).json()["token"]
    cookie = httpx.post(f"{service.client.base_url}/login", data={"token": token}, timeout=30).cookies["benchyard_session"]
    assert (given.status_code, bool(cookie)) == (201, True)
    secrets = (CANARY, GIVEN, token, cookie)
    found: list[str] = []
    for slug, model in OTHERS.items():
        assert service.client.post("/api/models", json={"slug": slug, **model}).status_code == 201
    provider.hold()
    runs = [service.submit(slug, sample_size=12, concurrency=1) for slug in (MODEL["slug"], *OTHERS)]  # type: ignore[arg-type]
    for run_id in runs:  # each is looked into while it works
        service.wait_items(run_id, 1)
        for each in service.containers(run_id):
            facts = [
                docker("inspect", each),
                docker("exec", each, "cat", "/proc/1/environ"),
                docker("logs", each, check=False),
            ]
            look(found, secrets, each, *facts)
    provider.refuse("a", "Incorrect key provided. Header: {key}")
    provider.go()
    for run_id in runs:
        run = wait_for(lambda: ended(service, run_id), 180, "the run ends")  # noqa: B023
        assert "provider_error" in run["outcomes"] or run["status"] == "failed", run
    asked = {(each["path"], each["authorization"]) for each in provider.seen() if each["question"] is not None}
    by_openai = {(path, f"Bearer {GIVEN}") for path in ("/v1/chat/completions", "/v1/responses")}
    assert asked == {("/v1/messages", CANARY), *by_openai}

    for path in [path for run_id in runs for path in api_paths(service, run_id)]:
        answer = service.client.get(path)
        look(found, secrets, path, answer.text, str(answer.headers))
    look(found, secrets, "the database", json.dumps(tables(service, database_url), default=readable))
    service.close()
    for file in service.data.rglob("*"):
        if file.is_file():
            look(found, secrets, str(file), file.read_bytes().decode("latin-1"))
    assert found == []


def ended(service: Service, run_id: str) -> dict[str, Any] | None:
    run = service.run(run_id)
    return run if run["status"] in ("completed", "failed", "cancelled") else None


def look(found: list[str], secrets: Sequence[str], where: str, *texts: str) -> None:
    assert any(texts), f"nothing to look at: {where}"
    found += [where for text in texts for secret in secrets if secret in text]


def api_paths(service: Service, run_id: str) -> list[str]:
    """Every path that a GET can have, for this run."""
    paths = [path for path, operations in service.client.get("/openapi.json").json()["paths"].items() if "get" in operations]
    filled = [path.replace("{run_id}", run_id).replace("{position}", "0").replace("{model}", "1") for path in paths]
    filled += [f"/api/container-runs/{run_id}/items/{position}" for position in range(1, 12)]
    return [path for path in filled if "{" not in path and path != "/api/events"]


def readable(value: Any) -> str:
    """A column as text; compressed ones are opened."""
    if not isinstance(value, bytes):
        return str(value)
    text: bytes = decompress(value) if value.startswith(ZSTD) else value
    return text.decode("latin-1")
