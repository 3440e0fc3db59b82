"""What can be measured, and with what: models, benchmarks, data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from orchestrator.client import bodies, models
from orchestrator.client.flavours import F, Resource, listing, operation, procedure
from orchestrator.client.requests import UPLOAD_S, Items, Request, at, given
from orchestrator.client.steps import Steps, wait


class Models(Resource[F]):
    """`model` is an id or a slug."""

    @listing
    def list(self, *, archived: bool | None = None, limit: int | None = None) -> Request[Items[models.ModelOut]]:
        return Request("GET", at("models"), models.ModelOutPage, {"archived": archived, "limit": limit})

    @operation
    def get(self, model: str | int) -> Request[models.ModelOut]:
        return Request("GET", at("models", model), models.ModelOut)

    @operation
    def create(self, **fields: Unpack[bodies.ModelCreate]) -> Request[models.ModelOut]:
        return Request("POST", at("models"), models.ModelOut, json=given(fields), keyed=True)

    @operation
    def change(self, model: str | int, **fields: Unpack[bodies.ModelPatch]) -> Request[models.ModelOut]:
        return Request("PATCH", at("models", model), models.ModelOut, json=dict(fields))

    @operation
    def delete(self, model: str | int) -> Request[None]:
        return Request("DELETE", at("models", model))

    @operation
    def sync(self) -> Request[models.ModelsSynced]:
        """Takes over what the providers list."""
        return Request("POST", at("models", "sync"), models.ModelsSynced, timeout_s=UPLOAD_S)


class Benchmarks(Resource[F]):
    @listing
    def list(self) -> Request[Items[models.BenchmarkOut]]:
        return Request("GET", at("benchmarks"), models.BenchmarkOutPage)

    @operation
    def get(self, name: str) -> Request[models.BenchmarkOut]:
        return Request("GET", at("benchmarks", name), models.BenchmarkOut)

    @listing
    def catalogue(self) -> Request[Items[models.CatalogueEntry]]:
        """Iterates over the published benchmarks that can be added by their names."""
        return Request("GET", at("benchmarks", "catalogue"), models.CatalogueEntryPage)

    @operation
    def add_published(self, name: str, **fields: Unpack[bodies.CatalogueChoice]) -> Request[models.DatasetJobOut]:
        return Request("POST", at("benchmarks", "catalogue", name), models.DatasetJobOut, json=given(fields))

    @operation
    def upload_file(self, file: Path | bytes, *, filename: str | None = None) -> Request[models.UploadedFile]:
        """Uploads records; the handle in the answer goes into `files` of a description."""
        named = filename or (file.name if isinstance(file, Path) else "records.jsonl")
        query = {"filename": named}
        return Request("POST", at("benchmarks", "files"), models.UploadedFile, query, file=file, timeout_s=UPLOAD_S)

    @operation
    def check(self, **fields: Unpack[bodies.BenchmarkDescription]) -> Request[models.BenchmarkCheck]:
        """The first prompts of a description, and how a right and a wrong answer would score."""
        return Request("POST", at("benchmarks", "check"), models.BenchmarkCheck, json=given(fields), timeout_s=UPLOAD_S)

    @listing
    def try_answers(self, **fields: Unpack[bodies.BenchmarkTrial]) -> Request[Items[models.TriedAnswerOut]]:
        answer = models.TriedAnswerOutPage
        return Request("POST", at("benchmarks", "try"), answer, json=given(fields), timeout_s=UPLOAD_S)

    @operation
    def add(self, **fields: Unpack[bodies.BenchmarkDescription]) -> Request[models.DatasetJobOut]:
        """Adds a benchmark by its description; `datasets.wait` waits until its problems are built."""
        return Request("POST", at("benchmarks"), models.DatasetJobOut, json=given(fields), timeout_s=UPLOAD_S)

    @operation
    def measure_agreement(self, name: str, **fields: Unpack[bodies.AgreementCreate]) -> Request[models.AgreementCreated]:
        """Queues a run that compares the judge with labelled examples."""
        return Request("POST", at("benchmarks", name, "agreement"), models.AgreementCreated, json=given(fields))

    @listing
    def agreement(self, name: str) -> Request[Items[models.AgreementOut]]:
        return Request("GET", at("benchmarks", name, "agreement"), models.AgreementOutPage)


class Datasets(Resource[F]):
    @operation
    def overview(self) -> Request[models.DatasetsOut]:
        """What is here, what is being built, and what can be added."""
        return Request("GET", at("datasets"), models.DatasetsOut)

    @operation
    def get(self, name: str, *, records: int = 0) -> Request[models.DatasetJobOut]:
        """The data set, or how far its building is; with the first `records` of it."""
        return _dataset(name, records)

    @operation
    def add(self, **fields: Unpack[bodies.DatasetCreate]) -> Request[models.DatasetJobOut]:
        """Fetches and builds it, from a known place or a URL."""
        return Request("POST", at("datasets"), models.DatasetJobOut, json=given(fields))

    @operation
    def upload(
        self,
        name: str,
        file: Path | bytes,
        *,
        filename: str | None = None,
        format: str | None = None,
        sha256: str | None = None,
    ) -> Request[models.DatasetJobOut]:
        """Builds it from a file that is sent along."""
        named = filename or (file.name if isinstance(file, Path) else None)
        query = {"filename": named, "format": format, "sha256": sha256}
        return Request("PUT", at("datasets", name), models.DatasetJobOut, query, file=file, timeout_s=UPLOAD_S)

    @procedure
    def wait(self, name: str, *, timeout_s: float | None = None) -> Steps[models.DatasetJobOut]:
        """Waits until it is built, well or not: `state` says which. Raises `WaitTimeout`."""
        return wait(_dataset(name, 0), lambda job: job.state != "running", timeout_s=timeout_s)

    @operation
    def verify(self, name: str) -> Request[models.DatasetOut]:
        """Reads the whole pack and compares it with its digest."""
        return Request("POST", at("datasets", name, "verify"), models.DatasetOut, timeout_s=UPLOAD_S)

    @operation
    def delete(self, name: str) -> Request[None]:
        return Request("DELETE", at("datasets", name))


def _dataset(name: str, records: int) -> Request[models.DatasetJobOut]:
    return Request("GET", at("datasets", name), models.DatasetJobOut, {"records": records or None})
