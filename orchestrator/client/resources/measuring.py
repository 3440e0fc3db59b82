"""Many runs as one, and runs at fixed times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from orchestrator.client import bodies, models
from orchestrator.client.flavours import F, Resource, Values, iteration, listing, operation, procedure
from orchestrator.client.requests import Items, Request, at, given
from orchestrator.client.steps import Steps, download, wait

UNDER_WAY = frozenset({"pending", "running", "ending"})


class Batches(Resource[F]):
    @operation
    def create(self, **fields: Unpack[bodies.BatchCreate]) -> Request[models.BatchCreated]:
        return Request("POST", at("batches"), models.BatchCreated, json=given(fields), keyed=True)

    @listing
    def list(self, *, limit: int | None = None) -> Request[Items[models.BatchOut]]:
        return Request("GET", at("batches"), models.BatchOutPage, {"limit": limit})

    @operation
    def get(self, batch_id: str) -> Request[models.BatchDetail]:
        return _batch(batch_id)

    @procedure
    def wait(self, batch_id: str, *, timeout_s: float | None = None) -> Steps[models.BatchDetail]:
        """Waits until all runs of the batch have ended. Raises `WaitTimeout`."""
        return wait(_batch(batch_id), lambda batch: batch.state not in UNDER_WAY, timeout_s=timeout_s)

    @operation
    def matrix(self, batch_id: str) -> Request[models.MatrixOut]:
        return Request("GET", at("batches", batch_id, "matrix"), models.MatrixOut)

    @operation
    def end(self, batch_id: str, **fields: Unpack[bodies.BatchEnd]) -> Request[models.BatchDetail]:
        return Request("POST", at("batches", batch_id, "end"), models.BatchDetail, json=given(fields))

    @operation
    def retry(self, batch_id: str, *, cancelled: bool = False) -> Request[models.BatchRetried]:
        """Queues its failed runs anew, and the cancelled ones if asked to."""
        return Request("POST", at("batches", batch_id, "retry"), models.BatchRetried, {"cancelled": cancelled or None})

    @iteration
    def archive(self, batch_id: str) -> Values[bytes]:
        """Iterates over the pieces of the batch's archive."""
        return Values(download(Request("GET", at("batches", batch_id, "archive"))))


class Schedules(Resource[F]):
    """One schedule per model; `model` is its id or slug."""

    @operation
    def save(self, **fields: Unpack[bodies.ScheduleSave]) -> Request[models.ScheduleDetail]:
        """Creates the model's schedule, or replaces it."""
        return Request("POST", at("schedules"), models.ScheduleDetail, json=given(fields))

    @listing
    def list(self, *, limit: int | None = None) -> Request[Items[models.ScheduleOut]]:
        return Request("GET", at("schedules"), models.ScheduleOutPage, {"limit": limit})

    @operation
    def get(self, model_id: str | int) -> Request[models.ScheduleDetail]:
        return Request("GET", at("schedules", model_id), models.ScheduleDetail)

    @operation
    def change(self, model_id: str | int, **fields: Unpack[bodies.ScheduleChange]) -> Request[models.ScheduleChanged]:
        return Request("PATCH", at("schedules", model_id), models.ScheduleChanged, json=given(fields))

    @operation
    def pause(self, model_id: str | int, *, paused: bool = True) -> Request[models.ScheduleDetail]:
        return Request("PATCH", at("schedules", model_id, "pause"), models.ScheduleDetail, json={"paused": paused})

    @operation
    def delete(self, model_id: str | int) -> Request[None]:
        return Request("DELETE", at("schedules", model_id))

    @operation
    def run(self, model_id: str | int) -> Request[models.RunCreated]:
        """Queues a run of the schedule now."""
        return Request("POST", at("schedules", model_id, "run"), models.RunCreated, keyed=True)

    @listing
    def fires(self, model_id: str | int, *, limit: int | None = None) -> Request[Items[models.FireOut]]:
        return Request("GET", at("schedules", model_id, "fires"), models.FireOutPage, {"limit": limit})

    @operation
    def panel(self, model_id: str | int, *, version: int | None = None) -> Request[models.PanelDetail]:
        return Request("GET", at("schedules", model_id, "panel"), models.PanelDetail, {"version": version})

    @operation
    def preview(
        self,
        *,
        cron: str,
        tz: str | None = None,
        count: int | None = None,
        sample_size: int | None = None,
        samples_per_problem: int | None = None,
        baseline_runs: int | None = None,
        alarm_rate: float | None = None,
        drop: float | None = None,
    ) -> Request[models.Preview]:
        """When it would run, and what drop it would detect."""
        query = {"cron": cron, "tz": tz, "count": count, "sample_size": sample_size, "drop": drop}
        more = {"samples_per_problem": samples_per_problem, "baseline_runs": baseline_runs, "alarm_rate": alarm_rate}
        return Request("GET", at("schedules", "preview"), models.Preview, {**query, **more})


class Results(Resource[F]):
    """Models side by side, and what they cost."""

    @operation
    def leaderboard(
        self,
        *,
        benchmark: str | None = None,
        after: str | None = None,
        before: str | None = None,
        sample: str | None = None,
    ) -> Request[models.LeaderboardOut]:
        query = {"benchmark": benchmark, "after": after, "before": before, "sample": sample}
        return Request("GET", at("leaderboard"), models.LeaderboardOut, query)

    @operation
    def costs(self, *, by: bodies.By = "day", days: int = 30) -> Request[models.CostsOut]:
        return Request("GET", at("costs"), models.CostsOut, {"by": by, "days": days})

    @iteration
    def export(self, run_ids: Sequence[str], *, format: bodies.ExportFormat = "csv") -> Values[bytes]:
        """Iterates over the pieces of one export of several runs."""
        return Values(download(Request("GET", at("exports"), query={"run_id": list(run_ids), "format": format})))


def _batch(batch_id: str) -> Request[models.BatchDetail]:
    return Request("GET", at("batches", batch_id), models.BatchDetail)
