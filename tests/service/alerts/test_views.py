"""A drop from 80 % to 60 % leads from its alert to the items of every problem that flipped."""

from __future__ import annotations

import pytest

from orchestrator.alerts import queries
from orchestrator.alerts.tables import Alert
from orchestrator.alerts.views import alert_detail
from orchestrator.errors import NotFound
from tests.served import Service
from tests.service.dashboard.hostile_texts import PAYLOADS, assert_harmless
from tests.service.dashboard.test_pages import browser
from tests.service.schedules.simulated_schedules import ScheduleWorld
from tests.service.schedules.test_judge import a_series

pytestmark = pytest.mark.anyio


async def test_a_drop_names_the_problems_that_broke(world: ScheduleWorld) -> None:
    series = await a_series(world)
    for _ in range(4):
        good = await series.run(32)
    bad = await series.run(24)
    (alert,) = await world.alerts()
    detail = await world.db.read(lambda s: alert_detail(s, alert.id or 0))
    assert (detail.kind, detail.run_id, detail.last_good_run_id) == ("drift.worse", bad.run_id, good.run_id)
    assert (detail.model, detail.has_schedule) == ("m1", True)
    broken = {(flip.problem_id, flip.direction, flip.position, flip.last_good_position) for flip in detail.flipped}
    assert broken == {(f"p{number}", "broken", number, number) for number in range(24, 32)}


async def test_an_unknown_alert_is_not_found(world: ScheduleWorld) -> None:
    with pytest.raises(NotFound, match="GET /api/alerts"):
        await world.db.read(lambda s: alert_detail(s, 99))


async def test_the_page_shows_the_problems_and_leads_to_their_items(shared_service: Service) -> None:
    service = shared_service
    run_id = await service.new_run(sample_size=2)
    await service.until(run_id, "completed")
    problem = (await service.client.get(f"/api/container-runs/{run_id}/items")).json()["items"][0]
    flipped = [
        {"benchmark": problem["benchmark"], "problem_id": problem["problem_id"], "before": 1.0, "now": 0.25},
        *({"benchmark": text, "problem_id": text, "before": 0.0, "now": 1.0} for text in PAYLOADS[:20]),
    ]
    alert = Alert(
        uid="shown", kind="drift.worse", run_id=run_id, title="worse", data={"flipped": flipped}, at=service.clock.now()
    )
    await service.services.db.write(lambda s: queries.add(s, alert))
    alert_id = (await service.client.get("/api/alerts")).json()["items"][0]["id"]
    async with browser(service) as client:
        page = (await client.get(f"/alerts/{alert_id}")).text
    assert f'href="/runs/{run_id}/items/{problem["position"]}"' in page
    assert "100.0 %" in page
    assert page.count('class="tag broken"') == 1
    assert page.count('class="tag fixed"') == 20
    assert_harmless(page)
