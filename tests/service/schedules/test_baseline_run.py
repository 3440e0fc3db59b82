"""The run that a schedule is compared with is checked when it is named."""

from __future__ import annotations

from typing import Any

import pytest
from sqlmodel import Session

from orchestrator.runs.tables import ContainerRun
from tests.rows import a_run
from tests.served import Service

pytestmark = pytest.mark.anyio
GOOD: dict[str, Any] = {"status": "completed", "score": {"comparable": True}}


async def stored(service: Service, model: str = "demo-strong", **fields: Any) -> str:
    models = (await service.client.get("/api/models")).json()["items"]
    model_id = next(each["id"] for each in models if each["slug"] == model)

    def make(session: Session) -> str:
        run: ContainerRun = a_run(model_id, **{**GOOD, **fields})
        session.add(run)
        session.flush()
        return run.id

    return await service.services.db.write(make)


async def save(service: Service, run_id: str | None, baseline: str = "run") -> int:
    body = {"model_id": "demo-strong", "cron_expression": "0 0 1 1 *", "sample_size": 2, "benchmarks": ["sample"]}
    answer = await service.client.post("/api/schedules", json={**body, "baseline": baseline, "baseline_run_id": run_id})
    if answer.status_code == 422:
        assert "baseline_run_id" in answer.json()["detail"]
    return answer.status_code


@pytest.mark.parametrize("baseline", ["run", "rolling", "last_good"])
@pytest.mark.parametrize(
    "fields",
    [
        {"status": "failed"},
        {"status": "running"},
        {"model": "demo-weak"},
        {"benchmarks": ["another"]},
        {"score": {"comparable": False}},
        {"kind": "command"},
        {"workspace_id": 77},
    ],
    ids=str,
)
async def test_a_run_that_cannot_be_compared_with_is_refused(
    shared_service: Service, fields: dict[str, Any], baseline: str
) -> None:
    assert await save(shared_service, await stored(shared_service, **fields), baseline) == 422
    assert await save(shared_service, "no-such-run", baseline) == 422


async def test_a_right_one_is_taken(shared_service: Service) -> None:
    assert await save(shared_service, await stored(shared_service)) in (200, 201)
    assert await save(shared_service, None, "rolling") in (200, 201)
