"""Schedules over HTTP: made, changed, fired, paused, judged, deleted; errors that say what to do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.served import Service

pytestmark = pytest.mark.anyio


async def save(service: Service, expect: int | None = None, **changed: Any) -> dict[str, Any]:
    body = {"model_id": "demo-strong", "cron_expression": "*/10 * * * *", "sample_size": 4, **changed}
    answer = await service.client.post("/api/schedules", json=body)
    assert answer.status_code in ((expect,) if expect else (200, 201)), answer.text
    return answer.json()  # type: ignore[no-any-return]


async def get(service: Service, path: str) -> dict[str, Any]:
    answer = await service.client.get(f"/api/schedules{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


async def until_fires(service: Service, count: int, **wanted: Any) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        while True:
            fires = (await get(service, "/demo-strong/fires"))["items"]
            if len(fires) >= count and all(fires[0][name] == value for name, value in wanted.items()):
                return fires
            await asyncio.sleep(0.05)


async def test_made_and_changed(service: Service) -> None:
    made = await save(service, 201, timezone="Europe/Berlin")
    assert made["words"] == "Every 10th minute of every hour, Europe/Berlin time"
    assert made["next_fire_at"] == made["next_fires"][0] == "2026-11-16T09:10:00Z"
    assert len(made["next_fires"]) == 5
    assert (made["panel"]["version"], made["panel"]["problems"], made["benchmarks"]) == (1, 4, ["sample"])
    assert (made["misfire_policy"], made["overlap"], made["baseline"]) == ("newest", "forbid", "rolling")
    assert made["can_see"]["from_history"] is False
    assert "False alarms: in at most 5 %" in made["can_see"]["sentence"]
    panel = await get(service, "/demo-strong/panel")
    # what is left out stays, and so does the panel
    changed = await save(service, 200, cron_expression="0 9 * * mon-fri")
    assert (changed["timezone"], changed["next_fire_at"]) == ("Europe/Berlin", "2026-11-17T08:00:00Z")
    assert await get(service, f"/{made['model_id']}/panel") == panel
    # another size is another panel; so is a redraw on purpose
    assert (await save(service, 200, sample_size=5))["panel"]["version"] == 2
    assert (await save(service, 200, sample_size=5, redraw=True))["panel"]["version"] == 3
    assert (await get(service, "/demo-strong/panel?version=1"))["benchmarks"] == panel["benchmarks"]
    listed = await get(service, "")
    assert [(row["model"], row["panel_version"]) for row in listed["items"]] == [("demo-strong", 3)]


async def test_it_fires_is_judged_and_keeps_its_problems(service: Service) -> None:
    await save(service)
    panel = (await get(service, "/demo-strong/panel"))["benchmarks"][0]["problem_ids"]
    for count in (1, 2):
        service.clock.advance(600)
        fires = await until_fires(service, count, outcome="fired")
        run = await service.until(fires[0]["run_id"], "completed")
        assert run["trigger_type"] == "schedule"
        assert run["plan"][0]["problem_ids"] == panel
        fires = await until_fires(service, count, verdict="not_comparable" if count == 1 else "no_change")
    assert fires[0]["instant"] == "2026-11-16T09:20:00Z"
    assert fires[0]["comparison"]["effect"] == 0
    assert fires[0]["comparison"]["low"] < 0 < fires[0]["comparison"]["high"]
    detail = await get(service, "/demo-strong")
    assert detail["last_fire"]["verdict"] == "no_change"
    assert detail["can_see"]["from_history"] is False, "every problem had the same result twice"
    badge = await get(service, "/demo-strong/badge")
    assert badge == {"schemaVersion": 1, "label": "demo-strong", "message": "50 % (15 to 85)", "color": "brightgreen"}


async def test_pause_and_go_on(service: Service) -> None:
    await save(service)
    paused = await service.client.patch("/api/schedules/demo-strong/pause")
    assert (paused.status_code, paused.json()["paused"], paused.json()["next_fires"]) == (200, True, [])
    service.clock.advance(1200)
    fires = await until_fires(service, 2)
    assert {fire["outcome"] for fire in fires} == {"skipped_paused"}
    going = await service.client.patch("/api/schedules/demo-strong/pause", json={"paused": False})
    assert (going.json()["paused"], going.json()["next_fire_at"]) == (False, "2026-11-16T09:30:00Z")
    service.clock.advance(600)
    assert (await until_fires(service, 3))[0]["outcome"] == "fired"


async def test_run_now(service: Service) -> None:
    await save(service, cron_expression="0 0 1 1 *")
    key = {"idempotency-key": "k1"}
    answer = await service.client.post("/api/schedules/demo-strong/run", headers=key)
    assert answer.status_code == 202, answer.text
    run_id = answer.json()["run_id"]
    assert answer.headers["location"] == f"/api/container-runs/{run_id}"
    assert (await service.client.post("/api/schedules/demo-strong/run", headers=key)).json()["run_id"] == run_id
    await service.until(run_id, "completed")
    fires = await until_fires(service, 1)
    assert (fires[0]["cause"], fires[0]["run_id"]) == ("manual", run_id)
    service.clock.advance(1)
    assert (await service.client.post("/api/schedules/demo-strong/run")).status_code == 202


async def test_run_now_does_not_overlap(service: Service) -> None:
    await save(service)
    answers = await asyncio.gather(*(service.client.post("/api/schedules/demo-strong/run") for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409]
    assert {answer.json().get("code") for answer in answers} == {None, "CONFLICT"}


async def test_deleted(service: Service) -> None:
    await save(service)
    service.clock.advance(600)
    await until_fires(service, 1, outcome="fired")
    assert (await service.client.delete("/api/schedules/demo-strong")).status_code == 204
    assert (await service.client.get("/api/schedules/demo-strong")).status_code == 404
    assert (await service.client.delete("/api/schedules/demo-strong")).status_code == 404
    assert len((await get(service, "/demo-strong/fires"))["items"]) == 1, "history stays"
    again = await save(service, 201)
    assert again["panel"]["version"] == 2


async def test_a_deleted_model_takes_its_schedule_along(service: Service) -> None:
    made = {"slug": "team/new", "provider": "demo", "name": "demo-strong"}
    assert (await service.client.post("/api/models", json=made)).status_code == 201
    saved = await save(service, 201, model_id="team/new")
    assert (await get(service, "/team/new"))["model_id"] == saved["model_id"]
    assert (await service.client.patch("/api/schedules/team/new/pause")).status_code == 200
    assert (await service.client.delete("/api/models/team/new")).status_code == 204
    assert (await get(service, ""))["items"] == []


async def test_preview(service: Service) -> None:
    found = await get(service, "/preview?cron=30 2 * * *&tz=Europe/Berlin&count=2&sample_size=200&drop=0.04")
    assert found["words"] == "At 02:30 every day"
    assert found["local_times"] == ["2026-11-17T02:30:00+01:00", "2026-11-18T02:30:00+01:00"]
    assert found["next_fires"] == ["2026-11-17T01:30:00Z", "2026-11-18T01:30:00Z"]
    assert 0.03 < found["can_see"]["drop"] < 0.1
    assert found["size_for"]["problems"] > 200


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"cron_expression": "61 * * * *"}, "the minute field '61'"),
    ({"timezone": "Mars/Olympus"}, "no time zone"),
    ({"sample_size": 0}, "sample_size"),
    ({"sample_size": 100_000}, "Ask for"),
    ({"benchmarks": ["nothing"]}, "no benchmark 'nothing'"),
    ({"benchmarks": ["sample", "sample"]}, "named once"),
    ({"instance_type": "huge"}, "no instance type"),
    ({"baseline": "run"}, "needs the id of a run"),
    ({"baseline": "run", "baseline_run_id": "nope"}, "completed run of this model"),
    ({"model_id": "nobody"}, "no model"),
    ({"misfire_policy": "never"}, "misfire_policy"),
    ({"surprise": 1}, "unknown field"),
    ({"timezone": "U\u0000TC"}, "timezone"),
]


async def test_errors_say_what_to_do(service: Service) -> None:
    for changed, says in REFUSED:
        body = {"model_id": "demo-strong", "cron_expression": "* * * * *", "sample_size": 4, **changed}
        answer = await service.client.post("/api/schedules", json=body)
        assert answer.status_code in (404, 422), answer.text
        assert says in answer.json()["detail"]
    assert (await get(service, ""))["items"] == []
    for query in ("cron=x", "cron=* * * * *&tz=No/where", "", "cron=* * * * *&count=0"):
        answer = await service.client.get(f"/api/schedules/preview?{query}")
        assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_ERROR")
    for after in ("0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"):  # beyond all years
        assert (await service.client.get(f"/api/schedules/demo-strong/fires?after={after}")).status_code == 422
    assert (await service.client.get("/api/schedules/demo-strong/fires?after=2026-01-01T00:00:00")).status_code == 200


async def test_alerts_over_http(service: Service) -> None:
    await save(service)
    hook = await service.client.post("/api/alerts/webhooks", json={"url": "http://127.0.0.1:9/", "model_id": "demo-strong"})
    assert hook.status_code == 201
    assert hook.json()["secret"].startswith("whsec_")
    service.clock.advance(3 * 3600)
    await until_fires(service, 18)
    alerts = (await service.client.get("/api/alerts?kind=schedule.missed")).json()["items"]
    assert len(alerts) == 1
    assert "11 scheduled runs missed" in alerts[0]["title"]
    feed = await service.client.get("/api/alerts/feed")
    assert feed.headers["content-type"].startswith("application/atom+xml")
    assert alerts[0]["uid"] in feed.text
    listed = (await service.client.get("/api/alerts/webhooks")).json()["items"]
    assert "secret" not in listed[0]
    path = f"/api/alerts/webhooks/{listed[0]['id']}/deliveries"
    assert (await service.client.get(path)).json()["items"][0]["state"] == "pending"
    again = await service.client.post(f"{path}/{alerts[0]['id']}/retry")
    assert (again.status_code, again.json()["tries"]) == (202, 0)
    assert (await service.client.post(f"{path}/999/retry")).status_code == 404
    for bad in ("ftp://x/", "http://", "http://user:pw@host/", "nonsense"):
        assert (await service.client.post("/api/alerts/webhooks", json={"url": bad})).status_code == 422
    assert (await service.client.delete(f"/api/alerts/webhooks/{listed[0]['id']}")).status_code == 204
    assert (await service.client.get(path)).status_code == 404


async def test_strangers_see_nothing(service: Service) -> None:
    for path in ("/api/schedules", "/api/schedules/preview?cron=* * * * *", "/api/alerts", "/api/alerts/feed"):
        assert (await service.stranger.get(path)).status_code == 401
