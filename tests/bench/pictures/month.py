"""A month of a lab, lived by the real service in a minute: daily schedules, a model that gets worse, comparisons, batches,
evals, small runs beside large ones, and runs that fail, end at their budget, are cancelled, wait and work."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlmodel import select

from orchestrator.schedules.tables import Schedule
from orchestrator.traces.sample import sample_traces
from tests.bench.pictures.problems import records
from tests.bench.pictures.provider import Provider
from tests.bench.pictures.runner import FORGETS, LabRunner
from tests.manual_clock import ManualClock
from tests.served import Service

DAYS = 18
SPEED = 40
"""How much faster time passes in the month than here."""
MODELS: dict[str, dict[str, Any]] = {
    "atlas-large": {"input_price": 3.0, "output_price": 15.0, "training_cutoff": "2025-09-30"},
    "atlas-small": {"input_price": 0.25, "output_price": 1.25, "training_cutoff": "2025-09-30"},
    "quartz-2": {"input_price": 1.0, "output_price": 4.0, "training_cutoff": "2026-01-31"},
    "heron-70b": {"input_price": 0.2, "output_price": 0.6, "training_cutoff": "2025-03-31"},
}


class LabClock(ManualClock):
    """Passes by itself, `speed` times as fast as time does."""

    def __init__(self, start: datetime, speed: float) -> None:
        super().__init__(start)
        self.speed = speed
        self._since = time.monotonic()

    def _catch_up(self) -> None:
        now = time.monotonic()
        elapsed, self._since = (now - self._since) * self.speed, now
        self._now += timedelta(seconds=elapsed)
        self._seconds += elapsed

    def now(self) -> datetime:
        self._catch_up()
        return super().now()

    def monotonic(self) -> float:
        self._catch_up()
        return super().monotonic()

    def set(self, moment: datetime) -> None:
        self._catch_up()
        if moment > self._now:
            self._seconds += (moment - self._now).total_seconds()
            self._now = moment


class Lab:
    def __init__(self, service: Service, clock: LabClock, runner: LabRunner, provider: Provider) -> None:
        self.service, self.clock, self.runner, self.provider = service, clock, runner, provider

    async def post(self, path: str, body: dict[str, Any] | None = None, *, method: str = "POST", **more: Any) -> Any:
        answer = await self.service.client.request(method, path, json=body, **more)
        assert answer.is_success, (path, answer.status_code, answer.text[:500])
        return answer.json() if answer.content else None

    async def run(self, model: str, benchmark: str = "contest", size: int = 90, **fields: Any) -> str:
        fields = {"instance_type": "standard-2", "concurrency": 8, **fields}
        body = {"model_id": model, "benchmarks": [benchmark], "sample_size": size, **fields}
        return str((await self.post("/api/container-runs", body))["run_id"])

    async def ended(self) -> None:
        """Waits until nothing runs."""
        while True:
            found = (await self.service.client.get("/api/container-runs", params={"limit": 100})).json()["items"]
            if all(run["status"] in ("completed", "failed", "cancelled") for run in found):
                return
            await asyncio.sleep(0.2)

    async def finished(self, *runs: str) -> None:
        for run_id in runs:
            await self.service.until(run_id, "completed", "failed", "cancelled")

    async def live(self) -> dict[str, str]:
        """The whole month; the ids of what pages are about."""
        end = datetime.now(UTC)
        first = (end - timedelta(days=DAYS)).replace(hour=4, minute=0, second=0, microsecond=0)
        self.clock.set(first)
        self.runner.forgets_at = end - timedelta(days=4)
        await self.prepare()
        known: dict[str, str] = {}
        for day in range(DAYS):
            await self.a_day(first + timedelta(days=day), day, known)
        self.clock.set(end - timedelta(hours=3))
        await self.last_day(known)
        self.clock.speed = 1
        self.clock.set(datetime.now(UTC))
        return known

    @property
    def place(self) -> dict[str, str]:
        return {"base_url": f"{self.provider.url}/v1", "key": "sk-lab-0123456789"}

    async def provider_moved(self) -> None:
        """The provider listens elsewhere each time."""
        await self.post("/api/providers/lab", self.place, method="PATCH")

    async def prepare(self) -> None:
        url = f"{self.provider.url}/v1"
        await self.post(
            "/api/providers", {"name": "lab", "base_url": url, "allow_private": True, "key": "sk-lab-0123456789"}
        )
        for slug, fields in MODELS.items():
            await self.post("/api/models", {"slug": slug, "provider": "lab", "name": slug, **fields})
        content = "".join(json.dumps(record) + "\n" for record in records()).encode()
        await self.post("/api/datasets/contest", None, method="PUT", params={"filename": "contest.jsonl"}, content=content)
        while any(job["state"] == "running" for job in (await self.service.client.get("/api/datasets")).json()["jobs"]):
            await asyncio.sleep(0.05)
        common = {"benchmarks": ["contest"], "sample_size": 60, "instance_type": "standard-2"}
        for slug, cron in (("atlas-large", "0 6 * * *"), ("heron-70b", "0 6 * * MON,THU"), ("atlas-small", "0 7 * * MON")):
            await self.post("/api/schedules", {"model_id": slug, "cron_expression": cron, "timezone": "UTC", **common})
        slack = {"url": f"{self.provider.url}/hook/slack", "format": "slack", "every_failed_run": True}
        await self.post("/api/alerts/webhooks", slack)
        await self.post("/api/alerts/webhooks", {"url": f"{self.provider.url}/hook/gone"})
        await self.post("/api/tokens", {"name": "nightly build", "scope": "run"})
        await self.post("/api/limits/everyone", {"runs_at_once": 8, "spend_per_day_usd": 50.0}, method="PUT")

    async def a_day(self, at: datetime, day: int, known: dict[str, str]) -> None:
        self.clock.set(at)
        runs = []
        if day % 6 == 2:
            runs = [await self.run(slug) for slug in MODELS]
        if day == 5:
            known["small"] = await self.run("quartz-2", size=8, tags=["smoke"], name="Smoke test after the upgrade")
            runs.append(known["small"])
        if day in (3, 9, 15):
            runs += [await self.run(slug, "sample", 36, instance_type="standard-1") for slug in ("demo-strong", "demo-weak")]
        await self.finished(*runs)
        if day == 10:
            await self.a_batch(known)
        if day == 11:
            await self.evals(known)
        for hour in (6, 7):
            self.clock.set(at.replace(hour=hour, second=5))
            await self.fired()
            await self.ended()

    async def fired(self) -> None:
        """Waits until no schedule is due."""
        while True:
            due = await self.service.services.db.read(lambda s: list(s.exec(select(Schedule.next_fire_at)).all()))
            if all(at is None or at > self.clock.now() for at in due):
                return
            await asyncio.sleep(0.05)

    async def a_batch(self, known: dict[str, str]) -> None:
        body = {
            "models": ["atlas-small", "quartz-2", "heron-70b"], "benchmarks": ["contest"], "sample_size": 24,
            "instance_types": ["standard-1", "standard-2"], "runs_per_instance_type": 2, "name": "Does the machine matter?",
        }  # fmt: skip
        known["batch"] = str((await self.post("/api/batches", body))["batch_id"])
        await asyncio.sleep(0.2)
        await self.ended()

    async def evals(self, known: dict[str, str]) -> None:
        body = {"name": "Shop answers", "description": "The answer solves the customer's problem.", "project": "shop"}
        known["set"] = str((await self.post("/api/eval-sets", body))["id"])
        rows: list[dict[str, Any]] = list(sample_traces(40, 3))
        for row in rows[28:]:
            row.pop("label")
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        query = {"eval_set_id": known["set"], "project": "shop"}
        await self.post("/api/traces", None, params=query, content=content)
        for _ in range(2):
            job = (await self.post(f"/api/eval-sets/{known['set']}/generate", {"model_id": "atlas-small"}))["job_id"]
            known["job"] = job
            while True:
                found = (await self.service.client.get(f"/api/jobs/{job}")).json()
                if found["status"] in ("completed", "failed"):
                    break
                await asyncio.sleep(0.05)
            if found["status"] == "completed":
                known["eval"] = found["eval_id"]
                await self.post(f"/api/evals/{known['eval']}/execute")
                await self.ended()

    async def last_day(self, known: dict[str, str]) -> None:
        known["run"] = await self.run("atlas-large", name="After the provider's change", tags=["drift", "check"],
                                      note="Is it the same on all problems?")  # fmt: skip
        known["other"] = await self.run("quartz-2")
        await self.finished(known["run"], known["other"])
        known["budget"] = await self.run("atlas-large", budget_usd=0.45)
        await self.finished(known["budget"])
        self.runner.refuses = "the provider answered 401: invalid API key (sk-…6789)"
        known["failed"] = await self.run("heron-70b", size=30)
        await self.finished(known["failed"])
        self.runner.refuses = None
        self.runner.out_of_memory = True
        known["killed"] = await self.run("heron-70b", "sample", 30, instance_type="basic")
        await self.finished(known["killed"])
        self.runner.out_of_memory = False
        self.runner.hold.at = 16
        known["cancelled"] = await self.run("quartz-2", name="Wrong key")
        while (await self.service.run(known["cancelled"]))["progress"]["done"] < 16:
            await asyncio.sleep(0.05)
        await self.post(f"/api/container-runs/{known['cancelled']}/cancel")
        self.runner.hold.at = None
        await self.service.engine.end_all()
        await self.finished(known["cancelled"])
        alerts = (await self.service.client.get("/api/alerts")).json()["items"]
        failed = next(each for each in alerts if each["run_id"] == known["failed"])
        await self.post(f"/api/alerts/{failed['id']}/acknowledge")
        muted = (await self.service.client.get("/api/models/demo-weak")).json()["id"]
        await self.post(f"/api/alerts/mutes/{muted}", {"hours": 48}, method="PUT")
        drift = [each for each in alerts if each["kind"].startswith("drift")]
        assert drift, "the model that forgets raised no alarm"
        known["alert"] = str(drift[0]["id"])
        known["forgets"] = FORGETS

    async def now(self, known: dict[str, str]) -> None:
        """A run at work, and a queue behind it; those of an earlier service go on, too."""
        self.provider.latency_s = 1.5
        self.runner.hold.at = 40
        self.runner.pause_s = 0.4
        if "live" in known:
            self.runner.hold.at = 8
            return
        known["live"] = await self.run("atlas-large", concurrency=8, budget_usd=3.0, instance_type="standard-3")
        await asyncio.sleep(4)
        for slug in ("quartz-2", "heron-70b"):
            known["queued"] = await self.run(slug, instance_type="standard-3")
        while (await self.service.run(known["live"]))["progress"]["done"] < 24:
            await asyncio.sleep(0.3)
