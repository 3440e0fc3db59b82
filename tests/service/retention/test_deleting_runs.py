"""Deleting runs: all they stored goes, what others need stays and says so, what was paid stays counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlmodel import Session, SQLModel

from orchestrator.archives.tables import ArchiveRow
from orchestrator.db.session import Database
from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.gateway.ledger.tables import DaySpending, GatewayCall, LostSend
from orchestrator.grading.tables import StoredAnswersRow
from orchestrator.retention import queries
from orchestrator.retention.queries import DeletionFilter
from orchestrator.runs.tables import Artefact, AttemptUsage, ContainerRun, Event
from orchestrator.schedules.tables import Schedule, ScheduleFire
from orchestrator.settings import Settings
from tests.manual_clock import START, ManualClock
from tests.rows import a_model, a_run, an_attempt, an_item
from tests.served import Service, served

pytestmark = pytest.mark.anyio


def ended(**changed: Any) -> ContainerRun:
    return a_run(status="completed", completed_at=START, cost_usd=2.5, **changed)


def fill(session: Session, run: ContainerRun) -> str:
    """A run with a row in every table that can hold something of it."""
    session.add(run)
    session.flush()
    session.add(an_attempt(run.id, token=None, removed_at=START, vcpu_s=7.0, gib_s=3.0))
    session.flush()
    session.add_all(
        [
            AttemptUsage(run_id=run.id, number=1, samples=[[0, 0, 0, 0]]),
            an_item(run.id),
            an_item(run.id, "p1", position=1),
            Artefact(run_id=run.id, name="a", attempt=1, size_bytes=1000, sha256="0" * 64, created_at=START),
            ArchiveRow(run_id=run.id, not_before=START, state="stored", kind="result", size_bytes=500, stored_at=START),
            StoredAnswersRow(run_id=run.id, benchmark="sample", problem_id="p0", answers=[]),
            LostSend(run_id=run.id, call_key="k", at=START),
            GatewayCall(
                run_id=run.id,
                call_key="k",
                request_hash="h",
                provider="demo",
                model="m1",
                state="settled",
                answer=b"x" * 300,
                created_at=START,
            ),
            Event(run_id=run.id, attempt=1, seq=1, type="log", data={"message": "hello"}, at=START),
        ]
    )
    session.flush()
    return run.id


async def purge_all(db: Database, run_id: str) -> None:
    while not await db.write(lambda s: queries.purge(s, run_id)):
        pass


async def test_every_row_of_a_deleted_run_goes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "PIECE", 1)

    def make(session: Session) -> tuple[str, str]:
        session.add(a_model())
        session.flush()
        session.add(DaySpending(day="2026-01-01", model_id=1, settled_usd=2.5))
        return fill(session, ended()), fill(session, ended())

    gone, stays = await database.write(make)
    amounts = await database.read(lambda s: queries.measure(s, [gone]))
    assert (amounts.runs, amounts.items, amounts.calls, amounts.artefacts, amounts.archives) == (1, 2, 1, 1, 1)
    assert amounts.bytes > 1800
    assert await database.write(lambda s: queries.hide(s, gone, by="me", now=START))
    assert not await database.write(lambda s: queries.hide(s, gone, by="me", now=START))
    await purge_all(database, gone)

    def left(session: Session) -> dict[str, tuple[int, int]]:
        found = {}
        for table in SQLModel.metadata.sorted_tables:
            name = "run_id" if "run_id" in table.c else "id" if table.name == "container_runs" else None
            if name is None:
                continue
            counts = [
                session.connection().execute(select(func.count()).select_from(table).where(table.c[name] == each)).scalar()
                for each in (gone, stays)
            ]
            found[table.name] = (int(counts[0] or 0), int(counts[1] or 0))
        return found

    counts = await database.read(left)
    assert {name: own for name, (own, _) in counts.items() if own} == {"events": 1}  # it says that the run was deleted
    assert counts["item_results"] == (0, 2)
    assert counts["gateway_calls"] == counts["attempt_usage"] == counts["archives"] == counts["given_answers"] == (0, 1)
    spent = await database.read(lambda s: s.connection().execute(select(func.sum(DaySpending.settled_usd))).scalar())  # type: ignore[call-overload]
    assert spent == 2.5
    used = await database.read(lambda s: queries.used_by_deleted(s, "model", START - timedelta(days=1)))
    assert [(row.key, row.runs, row.vcpu_s) for row in used] == [("m1", 1, 7.0)]
    assert "was deleted" in (await database.read(lambda s: queries.deletion_of(s, gone)) or "")


async def test_what_protects_a_run(database: Database) -> None:
    def make(session: Session) -> dict[str, str]:
        session.add(a_model())
        session.flush()
        runs = {
            "free": ended(),
            "live": a_run(status="running"),
            "container": ended(),
            "pinned": ended(),
            "baseline": ended(),
            "unjudged": ended(),
            "rolling": ended(),
            "batch": ended(batch_id="b1"),
            "batch mate": a_run(status="pending", batch_id="b1"),
        }
        session.add_all(runs.values())
        session.flush()
        session.add(an_attempt(runs["container"].id))
        queries.pin(session, runs["pinned"].id, START)
        session.add(
            Schedule(
                model_id=1,
                cron_expression="0 0 * * *",
                sample_size=1,
                baseline_run_id=runs["baseline"].id,
                created_at=START,
                updated_at=START,
            )
        )
        for hours, (name, verdict) in enumerate({"unjudged": None, "rolling": "no_change"}.items()):
            session.add(
                ScheduleFire(
                    model_id=1,
                    instant=START + timedelta(hours=hours),
                    outcome="fired",
                    run_id=runs[name].id,
                    panel_version=1,
                    recorded_at=START,
                    verdict=verdict,
                )
            )
        session.flush()
        return {name: run.id for name, run in runs.items()}

    ids = await database.write(make)
    for rolling in (True, False):
        found = await database.read(lambda s, rolling=rolling: queries.protections(s, list(ids.values()), rolling=rolling))  # type: ignore[misc]
        free = {name for name, run_id in ids.items() if run_id not in found}
        assert free == ({"free"} if rolling else {"free", "rolling"})
    assert "pinned" in found[ids["pinned"]]
    assert "has not ended" in found[ids["live"]]
    by_age = DeletionFilter(ended_before=START + timedelta(days=1))
    matching = await database.read(lambda s: queries.matching(s, by_age, limit=100))
    assert ids["free"] in matching
    assert ids["live"] not in matching
    await database.write(lambda s: queries.hide(s, ids["rolling"], by="me", now=START))
    await purge_all(database, ids["rolling"])

    def fire(session: Session) -> ScheduleFire | None:
        return session.get(ScheduleFire, (1, 1, START + timedelta(hours=1)))

    row = await database.read(fire)
    assert row is not None
    assert row.run_id is None
    assert row.verdict == "no_change"
    assert "was deleted" in row.detail


async def until_purged(service: Service, run_id: str) -> None:
    async with asyncio.timeout(60):
        while [row for row in await service.services.db.read(lambda s: queries.unpurged(s, 100)) if row.id == run_id]:
            await asyncio.sleep(0.02)


async def containers_gone(service: Service, run_id: str) -> None:
    async with asyncio.timeout(60):
        while (await service.run(run_id))["archive"]["state"] != "stored":
            await asyncio.sleep(0.02)


async def test_a_run_is_deleted_over_http(service: Service) -> None:
    run_id, other = await service.new_run(), await service.new_run()
    for each in (run_id, other):
        await service.until(each, "completed")
        await containers_gone(service, each)
    path = f"/api/container-runs/{run_id}"
    archive = service.settings.data / "archives" / run_id
    assert archive.is_dir()

    look = (await service.client.delete(path, params={"dry_run": "true"})).json()
    assert (look["runs"], look["items"], look["archives"]) == (1, 3, 1)
    assert (await service.client.get(path)).status_code == 200

    assert (await service.client.post(f"{path}/pin")).status_code == 204
    assert (await service.run(run_id))["pinned"] is True
    refused = await service.client.delete(path)
    assert refused.status_code == 409
    assert "pinned" in refused.json()["detail"]
    assert (await service.client.post(f"{path}/unpin")).status_code == 204

    assert (await service.client.delete(path)).status_code == 202
    gone = await service.client.get(path)
    assert gone.status_code == 404
    assert "was deleted" in gone.json()["detail"]
    assert (await service.client.delete(path)).status_code == 404
    await until_purged(service, run_id)
    assert not archive.exists()
    assert (await service.client.get(f"/api/container-runs/{other}/items")).json()["items"]
    listed = (await service.client.get("/api/container-runs")).json()["items"]
    assert [each["id"] for each in listed] == [other]
    costs = (await service.client.get("/api/machine-costs", params={"by": "model"})).json()["items"]
    assert [each["runs"] for each in costs] == [2]
    entries = (await service.client.get("/api/audit", params={"action": "DELETE"})).json()["items"]
    assert {entry["object_id"] for entry in entries} == {run_id}


async def never_done(_container: FakeContainer) -> int:
    await asyncio.Event().wait()
    return 0


async def test_a_run_that_has_not_ended_stays(new_settings: Callable[..., Settings]) -> None:
    async with served(new_settings(), engine=FakeEngine(behaviour=never_done)) as service:
        run_id = await service.new_run()
        refused = await service.client.delete(f"/api/container-runs/{run_id}")
        await service.engine.end_all()
    assert refused.status_code == 409
    assert "cancel it first" in refused.json()["detail"]


@pytest.mark.parametrize(
    "body", [{}, {"dry_run": True}, {"older_than_days": -1}, {"ids": []}, {"ended_before": "2026-01-01T00:00:00"}]
)
async def test_a_filter_that_names_nothing_is_refused(service: Service, body: dict[str, object]) -> None:
    answer = await service.client.post("/api/container-runs/delete", json=body)
    assert answer.status_code == 422


async def test_members_of_a_batch_are_counted_after_they_are_gone(service: Service) -> None:
    made = await service.client.post("/api/batches", json={"models": ["demo-strong", "demo-weak"], "sample_size": 2})
    batch = made.json()["batch_id"]
    members = (await service.client.get("/api/container-runs", params={"batch_id": batch})).json()["items"]
    for each in members:
        await service.until(each["id"], "completed")
        await containers_gone(service, each["id"])
    answer = await service.client.post(
        "/api/container-runs/delete", json={"batch_id": batch, "model": "demo-weak", "status": "completed"}
    )
    assert answer.json()["runs"] == 1
    detail = (await service.client.get(f"/api/batches/{batch}")).json()
    assert (detail["runs"], detail["deleted_runs"], detail["state"]) == (1, 1, "completed")
    assert (await service.client.get(f"/api/batches/{batch}/matrix")).status_code == 200


async def test_old_runs_go_by_themselves(new_settings: Callable[..., Settings]) -> None:
    clock = ManualClock()
    async with served(new_settings(result_retention_days=30), clock=clock) as service:
        old = await service.new_run()
        await service.until(old, "completed")
        await containers_gone(service, old)
        clock.advance(29 * 86400)
        await service.services.deletion.retain()
        assert (await service.run(old))["status"] == "completed"
        young = await service.new_run()
        await service.until(young, "completed")
        clock.advance(2 * 86400)
        async with asyncio.timeout(60):
            while (await service.client.get(f"/api/container-runs/{old}")).status_code == 200:
                clock.advance(3601)
                await asyncio.sleep(0.1)
        assert (await service.run(young))["status"] == "completed"
        entries: list[dict[str, Any]] = []
        async with asyncio.timeout(60):  # the entry follows when all runs of a round are deleted
            while not entries:
                entries = (await service.client.get("/api/audit", params={"action": "retention"})).json()["items"]
        assert [entry["actor_kind"] for entry in entries] == ["system"]
        await service.engine.end_all()
