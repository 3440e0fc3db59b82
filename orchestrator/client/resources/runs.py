"""Runs, what they found, and the jobs list."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from orchestrator.client import bodies, models
from orchestrator.client.flavours import F, Resource, Values, iteration, listing, operation, procedure
from orchestrator.client.requests import UPLOAD_S, Items, Request, at, given
from orchestrator.client.steps import TERMINAL, Steps, StreamEvent, download, follow, wait


class Runs(Resource[F]):
    @operation
    def create(self, **fields: Unpack[bodies.RunCreate]) -> Request[models.RunCreated]:
        """Queues a benchmark run of one model."""
        return Request("POST", at("container-runs"), models.RunCreated, json=given(fields), keyed=True)

    @operation
    def create_command(self, **fields: Unpack[bodies.CommandRunCreate]) -> Request[models.RunCreated]:
        """Queues a command of an image."""
        return Request("POST", at("container-runs"), models.RunCreated, json=given(fields), keyed=True)

    @operation
    def create_harness(self, **fields: Unpack[bodies.HarnessRunCreate]) -> Request[models.RunCreated]:
        """Queues a run of another evaluation harness."""
        return Request("POST", at("container-runs"), models.RunCreated, json=given(fields), keyed=True)

    @operation
    def quote(self, **fields: Unpack[bodies.RunCreate]) -> Request[models.QuoteOut]:
        """What a run would cost and how long it would take."""
        return Request("POST", at("quotes"), models.QuoteOut, json=given(fields))

    @listing
    def list(
        self,
        *,
        status: bodies.Status | None = None,
        model_id: int | None = None,
        batch_id: str | None = None,
        trigger_type: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
    ) -> Request[Items[models.RunOut]]:
        """Iterates over the runs, the newest first."""
        query = {"status": status, "model_id": model_id, "batch_id": batch_id, "trigger_type": trigger_type}
        return Request("GET", at("container-runs"), models.RunOutPage, {**query, "tag": tag, "limit": limit})

    @operation
    def get(self, run_id: str) -> Request[models.RunDetail]:
        return _detail(run_id)

    @procedure
    def wait(self, run_id: str, *, timeout_s: float | None = None) -> Steps[models.RunDetail]:
        """Waits until the run has ended, well or not. Raises `WaitTimeout`."""
        return wait(_detail(run_id), lambda run: run.status in TERMINAL, timeout_s=timeout_s)

    @iteration
    def events(self, run_id: str, *, after: str | None = None) -> Values[StreamEvent]:
        """Iterates over the run's events until it ends; after a broken connection it goes on after the last event."""
        return Values(follow(at("container-runs", run_id, "stream"), _detail(run_id), after=after))

    @operation
    def score(self, run_id: str) -> Request[models.ScoreDetail]:
        return Request("GET", at("container-runs", run_id, "score"), models.ScoreDetail)

    @operation
    def comparison(self, run_id: str, *, base: str) -> Request[models.RunComparison]:
        """The run compared with another one, problem by problem."""
        return Request("GET", at("container-runs", run_id, "comparison"), models.RunComparison, {"base": base})

    @listing
    def items(
        self, run_id: str, *, outcome: bodies.Outcome | None = None, limit: int | None = None
    ) -> Request[Items[models.ItemOut]]:
        query = {"outcome": outcome, "limit": limit}
        return Request("GET", at("container-runs", run_id, "items"), models.ItemOutPage, query)

    @operation
    def item(self, run_id: str, position: int) -> Request[models.ItemResult]:
        return Request("GET", at("container-runs", run_id, "items", position), models.ItemResult)

    @listing
    def calls(self, run_id: str, *, limit: int | None = None) -> Request[Items[models.CallOut]]:
        """Iterates over the run's model calls."""
        return Request("GET", at("container-runs", run_id, "calls"), models.CallOutPage, {"limit": limit})

    @listing
    def moves(self, run_id: str) -> Request[Items[models.MoveOut]]:
        """Iterates over the items that a regrading judged differently."""
        return Request("GET", at("container-runs", run_id, "moves"), models.MoveOutPage)

    @operation
    def logs(
        self, run_id: str, *, attempt: int | None = None, after: int | None = None, limit: int | None = None
    ) -> Request[models.LogsOut]:
        query = {"attempt": attempt, "after": after, "limit": limit}
        return Request("GET", at("container-runs", run_id, "logs"), models.LogsOut, query)

    @operation
    def label(self, run_id: str, **fields: Unpack[bodies.LabelsChange]) -> Request[models.RunOut]:
        """Changes the name, the tags or the note of a run; null or an empty value takes it away."""
        return Request("PATCH", at("container-runs", run_id), models.RunOut, json=dict(fields))

    @operation
    def cancel(self, run_id: str) -> Request[models.RunOut]:
        return Request("POST", at("container-runs", run_id, "cancel"), models.RunOut)

    @operation
    def retry(self, run_id: str) -> Request[models.RunCreated]:
        """Queues the run anew."""
        return Request("POST", at("container-runs", run_id, "retry"), models.RunCreated, keyed=True)

    @operation
    def regrade(self, run_id: str, *, instance_type: str | None = None) -> Request[models.RegradeCreated]:
        """Judges the run's answers anew, without asking a model."""
        query = {"instance_type": instance_type}
        return Request("POST", at("container-runs", run_id, "regrade"), models.RegradeCreated, query)

    @operation
    def grade(
        self,
        answers: Path | bytes,
        *,
        benchmark: str,
        filename: str | None = None,
        model: str | None = None,
        instance_type: str | None = None,
        budget_usd: float | None = None,
    ) -> Request[models.GradeCreated]:
        """Uploads stored answers and queues a run that judges them."""
        named = filename or (answers.name if isinstance(answers, Path) else None)
        query = {"benchmark": benchmark, "filename": named, "model": model, "instance_type": instance_type}
        more = {**query, "budget_usd": budget_usd}
        return Request("POST", at("grades"), models.GradeCreated, more, file=answers, timeout_s=UPLOAD_S)

    @operation
    def delete(self, run_id: str, *, dry_run: bool = False) -> Request[models.DeletionOut]:
        return Request("DELETE", at("container-runs", run_id), models.DeletionOut, {"dry_run": dry_run or None})

    @operation
    def delete_many(self, **fields: Unpack[bodies.RunsDelete]) -> Request[models.DeletionOut]:
        return Request("POST", at("container-runs", "delete"), models.DeletionOut, json=given(fields))

    @operation
    def pin(self, run_id: str) -> Request[None]:
        """Keeps the run when older ones are deleted."""
        return Request("POST", at("container-runs", run_id, "pin"))

    @operation
    def unpin(self, run_id: str) -> Request[None]:
        return Request("POST", at("container-runs", run_id, "unpin"))

    @iteration
    def export(self, run_id: str, *, format: bodies.ExportFormat = "jsonl") -> Values[bytes]:
        """Iterates over the pieces of the export."""
        return Values(download(Request("GET", at("container-runs", run_id, "export"), query={"format": format})))

    @iteration
    def archive(self, run_id: str) -> Values[bytes]:
        """Iterates over the pieces of the run's archive."""
        return Values(download(Request("GET", at("container-runs", run_id, "archive"))))

    @iteration
    def artefact(self, run_id: str, name: str) -> Values[bytes]:
        """Iterates over the pieces of a file that the run left."""
        return Values(download(Request("GET", at("container-runs", run_id, "artefacts", name))))


class Jobs(Resource[F]):
    """Runs of every kind, and data sets that are built, in one list."""

    @listing
    def list(
        self,
        *,
        type: bodies.JobType | None = None,
        status: bodies.Status | None = None,
        dead_letter: bool | None = None,
        eval_set_id: str | None = None,
        eval_id: str | None = None,
        limit: int | None = None,
    ) -> Request[Items[models.JobOut]]:
        query = {"type": type, "status": status, "dead_letter": dead_letter, "eval_set_id": eval_set_id}
        return Request("GET", at("jobs"), models.JobOutPage, {**query, "eval_id": eval_id, "limit": limit})

    @operation
    def get(self, job_id: str) -> Request[models.JobDetail]:
        return _job(job_id)

    @procedure
    def wait(self, job_id: str, *, timeout_s: float | None = None) -> Steps[models.JobDetail]:
        return wait(_job(job_id), lambda job: job.status in TERMINAL, timeout_s=timeout_s)

    @iteration
    def events(self, job_id: str, *, after: str | None = None) -> Values[StreamEvent]:
        return Values(follow(at("jobs", job_id, "stream"), _job(job_id), after=after))

    @operation
    def cancel(self, job_id: str) -> Request[models.JobOut]:
        return Request("POST", at("jobs", job_id, "cancel"), models.JobOut)

    @operation
    def retry(self, job_id: str) -> Request[models.JobCreated]:
        return Request("POST", at("jobs", job_id, "retry"), models.JobCreated, keyed=True)

    @operation
    def dismiss(self, job_id: str) -> Request[models.JobOut]:
        return Request("POST", at("jobs", job_id, "dismiss"), models.JobOut)


def _detail(run_id: str) -> Request[models.RunDetail]:
    return Request("GET", at("container-runs", run_id), models.RunDetail)


def _job(job_id: str) -> Request[models.JobDetail]:
    return Request("GET", at("jobs", job_id), models.JobDetail)
