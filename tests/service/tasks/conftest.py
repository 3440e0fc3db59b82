"""The whole service over HTTP on both databases, with a task runner's token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from orchestrator.settings import Settings
    from tests.served import Service

PROVIDER = "lab"


class Tasks:
    """A task runner by hand."""

    def __init__(self, service: Service, token: str) -> None:
        self.service = service
        self.token = token
        self.http = httpx.AsyncClient(base_url=service.url, headers={"authorization": f"Bearer {token}"}, timeout=60)

    async def new(self, command: Any = "echo hello", *, provider: str | None = PROVIDER, **fields: Any) -> str:
        """A command run for this provider."""
        body = {"image": self.service.settings.runner_image, "command": command, "repeats": 2, **fields}
        place = {} if provider is None else {"provider": provider}
        answer = await self.service.client.post(
            "/api/container-runs", json={"kind": "command", "command": body, "instance_type": "standard-1", **place}
        )
        assert answer.status_code == 202, answer.text
        run_id: str = answer.json()["run_id"]
        return run_id

    async def post(self, path: str, expect: int = 200, **body: Any) -> dict[str, Any]:
        answer = await self.http.post(path, json=body)
        assert answer.status_code == expect, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def claim(self, **fields: Any) -> dict[str, Any]:
        """The next task; waits until one that was lost or put off is due again."""
        async with asyncio.timeout(60):
            while True:
                found = await self.post("/claim", provider=PROVIDER, **fields)
                if found["status"] == "task" or not found["open"]:
                    return found
                await self.service.pass_time(0.5)

    def about(self, task: dict[str, Any]) -> dict[str, Any]:
        return {"task_id": task["task_id"], "lease": task["lease"]}


def passed(*numbers: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"repeat": number, "exit_code": 0, "wall_s": 0.5 + number, **fields} for number in numbers]


@pytest.fixture
async def service(
    new_settings: Callable[..., Settings], migrated_database_url: str, dialect: str, anyio_backend: str
) -> AsyncIterator[Service]:
    from tests.served import served

    where = {"database_url": migrated_database_url} if dialect == "postgresql" else {}
    async with served(new_settings(lease_s=1, suspect_s=1, reconcile_s=1, **where)) as it:
        yield it
        await it.engine.end_all()


@pytest.fixture
async def tasks(service: Service) -> AsyncIterator[Tasks]:
    made = await service.client.post("/api/tokens", json={"name": "lab", "scope": "agent"})
    found = Tasks(service, made.json()["token"])
    async with found.http:
        yield found
