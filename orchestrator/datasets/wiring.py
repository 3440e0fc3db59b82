"""Wires up dataset downloads: in the background, from the addresses that this installation allows."""

from __future__ import annotations

import asyncio
from functools import partial
from urllib.parse import urlsplit

from orchestrator.alerts.sending.webhooks import AllowedAddresses
from orchestrator.benchmarks.building.hub_records import HubRecords
from orchestrator.benchmarks.published.catalogue import chosen, refuse_choices
from orchestrator.benchmarks.service import BenchmarkFiles
from orchestrator.datasets.catalogue import SAMPLE, Catalogue
from orchestrator.datasets.fetching import library
from orchestrator.datasets.fetching.sources import hub_endpoint
from orchestrator.datasets.jobs import DatasetJobs, Job
from orchestrator.datasets.schemas import DatasetCreate
from orchestrator.errors import Conflict
from orchestrator.outbound.addresses import AddressRule
from orchestrator.settings import Settings


async def fetch_dataset(
    body: DatasetCreate,
    settings: Settings,
    jobs: DatasetJobs,
    benchmark_files: BenchmarkFiles,
    judge_model: str | None = None,
) -> Job:
    """Adds the data of a known benchmark or of a source. `judge_model` is for a published benchmark that a model judges."""
    definition = chosen(body.name, judge_model) if body.source is None else None
    if definition is not None:
        refuse_choices(body.name, body.model_dump(exclude={"name"}))
        return jobs.start(body.name, lambda report: benchmark_files.build(definition, {}, report))
    order = library.Order(
        body.name,
        source=body.source,
        release=body.release,
        form=body.format,
        sha256=body.sha256,
        revision=body.revision,
        config=body.config,
        split=body.split,
    )
    await asyncio.to_thread(library.check, order)
    judge = _allowed(settings.dataset_allow).judge
    work = partial(library.add, settings.data.absolute(), order, room=settings.room, judge=judge)
    return jobs.start(body.name, lambda report: work(report=report))


async def remove_dataset(name: str, catalogue: Catalogue) -> None:
    if name == SAMPLE:
        raise Conflict("the bundled sample cannot be removed")
    await asyncio.to_thread(catalogue.remove, name)


def open_benchmark_files(settings: Settings, catalogue: Catalogue) -> BenchmarkFiles:
    def judge(host: str) -> AddressRule:
        return _allowed(settings.dataset_allow).judge(host)

    return BenchmarkFiles(catalogue, settings.room, HubRecords(settings.data.absolute(), settings.room, judge))


def _allowed(listed: tuple[str, ...]) -> AllowedAddresses:
    """The addresses that datasets may come from, including the hub configured by the operator."""
    hub = urlsplit(hub_endpoint()).hostname
    return AllowedAddresses([*listed, *([hub] if hub else [])], "BENCHYARD_DATASET_ALLOW")
