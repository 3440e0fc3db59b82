"""The OpenAPI document is good enough for a generator: its names are stable, and the client that openapi-python-client makes
of it works against the service."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import settings_in
from tests.contract.two_workspaces import World, two_workspaces
from tests.served import TOKEN, served

ROOT = Path(__file__).parents[2]
MAY_ANSWER: dict[str, list[int]] = {
    "/api/commands/compare": [422],
    "/api/container-runs/{run_id}/comparison": [422],
    "/api/container-runs/{run_id}/moves": [409],
    "/api/container-runs/{run_id}/artefacts/{name}": [404],
    "/shared/badges/{model_id}/{key}.svg": [404],
    "/shared/badges/{model_id}/{key}": [404],
    "/shared/feeds/{model_id}/{key}": [404],
    "/shared/feed/{key}": [404],
    "/api/auth/login": [303],
    "/api/auth/logout": [303],
    "/api/account/sessions": [403],
    "/api/account/tokens": [403],
}
"""Where this test's rows have nothing to answer with, or a token is no person: a refusal that the client must understand."""
QUERY = {"cron": "0 9 * * 1"}
"""What some of them must be asked with."""


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, data_template: Path, anyio_backend: str) -> AsyncIterator[World]:
    make = settings_in(tmp_path_factory.mktemp("generated"), data_template)
    async with served(make(reconcile_s=60)) as service:
        found = await two_workspaces(service)
        yield found
        for client in found.callers.values():
            await client.aclose()
        await service.engine.end_all()


async def run(*argv: str, stdin: str = "") -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=ROOT
    )
    out, err = await process.communicate(stdin.encode())
    assert process.returncode is not None
    return process.returncode, out.decode() + err.decode() if process.returncode else out.decode()


async def document(world: World) -> dict[str, Any]:
    answer = await world.service.stranger.get("/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.anyio
async def test_every_schema_has_a_plain_name_and_every_operation_its_own(world: World) -> None:
    found = await document(world)
    names = list(found["components"]["schemas"])
    assert [name for name in names if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name)] == []
    operations = [each["operationId"] for methods in found["paths"].values() for each in methods.values()]
    assert len(operations) == len(set(operations))
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(found)))
    assert referred <= set(names)


@pytest.mark.anyio
async def test_a_generated_client_works(world: World, tmp_path: Path) -> None:
    code, said = await run(str(ROOT / "scripts" / "client-generator"))
    assert code == 0, said
    programs = Path(said.strip())
    found = await document(world)
    (tmp_path / "openapi.json").write_text(json.dumps(found))
    (tmp_path / "config.json").write_text(json.dumps({"post_hooks": []}))
    where = ("--path", str(tmp_path / "openapi.json"), "--output-path", str(tmp_path / "benchyard_client"))
    code, said = await run(
        str(programs / "openapi-python-client"),
        *("generate", *where, "--meta", "none", "--fail-on-warning", "--config", str(tmp_path / "config.json")),
    )
    assert code == 0, said
    things = {name.removesuffix(":path"): value for name, value in world.alpha.things.items()}
    task_body = {"image": world.service.settings.runner_image, "command": ["true"]}
    command = {"kind": "command", "command": task_body, "provider": "nowhere"}
    made = await world.callers["owner"].post("/api/container-runs", json=command)
    assert made.status_code == 202, made.text
    task = {
        "where": str(tmp_path),
        "package": "benchyard_client",
        "url": world.service.url,
        "token": TOKEN,
        "workspace": "alpha",
        "openapi": found,
        "things": {**things, "model": "demo-strong"},
        "query": QUERY,
        "instead": {
            "/api/commands/{run_id}": {"run_id": made.json()["run_id"]},
            "/api/datasets/{name}": {"name": "sample"},
            "/api/benchmarks/{name}": {"name": "sample"},
            "/api/benchmarks/{name}/agreement": {"name": "sample"},
            "/api/benchmarks/catalogue/{name}": {"name": "mmlu"},
            "/api/prices/find": {"provider": "anthropic", "model": "claude-fable-5"},
            "/api/providers/{name}": {"name": "anthropic"},
        },
        "may_answer": MAY_ANSWER,
    }
    code, said = await run(
        str(programs / "python"), str(Path(__file__).parent / "use_generated_client.py"), stdin=json.dumps(task)
    )
    assert (code, said) == (0, ""), said
