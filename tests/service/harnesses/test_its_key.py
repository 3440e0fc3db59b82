"""The key that a harness is given, taken to the orchestrator itself: neither pages nor API nor the runner's API know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine
from runner.harness.model_endpoint import harness_key
from tests.served import RunnerClient, served
from tests.service.harnesses.simulated_harness import HARNESS, SimulatedHarness

if TYPE_CHECKING:
    from orchestrator.settings import Settings

pytestmark = pytest.mark.anyio

QUESTION = {"model": "demo-strong", "messages": [{"role": "user", "content": "x"}]}
OF_USERS: list[tuple[str, str, Any]] = [
    ("GET", "/api/container-runs", None),
    ("GET", "/api/models", None),
    ("POST", "/api/tokens", {"name": "mine", "scope": "admin"}),
    ("POST", "/api/container-runs", {"model_id": "demo-strong", "sample_size": 1}),
    ("GET", "/runs", None),
]


class Thief(SimulatedHarness):
    """Tries the harness's key at every door, and the run's own token at the doors of users."""

    def __init__(self) -> None:
        super().__init__(count=1)
        self.service_url = ""
        self.statuses: dict[str, int] = {}

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        await runner.claim()
        run = f"/runner/runs/{runner.spec['run_id']}"
        question = f"{runner.spec['gateway_url']}/demo/v1/chat/completions"
        keys = {"harness": harness_key(runner.spec["run_token"]), "run": runner.spec["run_token"]}
        doors: list[tuple[str, str, Any]] = [
            ("POST", "/runner/claim", {}),
            ("POST", f"{run}/events", []),
            ("GET", f"{run}/problems", None),
        ]
        for method, path, body in [*doors, ("POST", question, QUESTION)]:
            headers = {"authorization": f"Bearer {keys['harness']}"}
            answer = await runner.http.request(method, path, json=body, headers=headers)
            self.statuses[f"harness: {method} {path}"] = answer.status_code
        for whose, key in keys.items():
            for method, path, body in OF_USERS:
                headers = {"authorization": f"Bearer {key}"}
                answer = await runner.http.request(method, self.service_url + path, json=body, headers=headers)
                self.statuses[f"{whose}: {method} {path}"] = answer.status_code
        await runner.close()
        return await super().__call__(container)


async def test_the_key_of_a_harness_opens_nothing(new_settings: Callable[..., Settings], anyio_backend: str) -> None:
    thief = Thief()
    async with served(new_settings(command_images=("inspect:*",)), engine=FakeEngine(behaviour=thief)) as yard:
        thief.service_url = yard.url
        body = {"kind": "harness", "model_id": "demo-strong", "harness": HARNESS}
        run_id = (await yard.client.post("/api/container-runs", json=body)).json()["run_id"]
        await yard.until(run_id, "completed")
        calls = (await yard.client.get(f"/api/container-runs/{run_id}/calls")).json()["items"]
        await yard.engine.end_all()
    assert len(thief.statuses) == 4 + 2 * len(OF_USERS)
    assert {
        door: status for door, status in thief.statuses.items() if status != 401 and not door.endswith("GET /runs")
    } == {}
    assert {thief.statuses[f"{whose}: GET /runs"] for whose in ("harness", "run")} <= {401, 303}, "to where one signs in"
    assert calls == [], "no call was made in the name of the run"
