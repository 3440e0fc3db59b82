"""Wires up dataset downloads: in the background, from the addresses that this installation allows."""

from __future__ import annotations

import asyncio
from functools import partial
from urllib.parse import urlsplit

from orchestrator.alerts.webhooks import AllowedAddresses
from orchestrator.datasets.catalogue import SAMPLE, Catalogue
from orchestrator.datasets.fetching import library
from orchestrator.datasets.fetching.sources import hub_endpoint
from orchestrator.datasets.jobs import DatasetJobs, Job
from orchestrator.datasets.schemas import DatasetCreate
from orchestrator.errors import Conflict
from orchestrator.settings import Settings


async def fetch_dataset(body: DatasetCreate, settings: Settings, jobs: DatasetJobs) -> Job:
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


def _allowed(listed: tuple[str, ...]) -> AllowedAddresses:
    """The addresses that datasets may come from, including the hub configured by the operator."""
    hub = urlsplit(hub_endpoint()).hostname
    return AllowedAddresses([*listed, *([hub] if hub else [])], "BENCHYARD_DATASET_ALLOW")
