"""Benchmarks that users describe: check a description, and build its pack in the background."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.benchmarks.building import Origin, Preview, build_benchmark, check_name, preview
from orchestrator.benchmarks.definition import Definition, read_definition
from orchestrator.benchmarks.hub_records import HubRecords
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.fetching.library import Report
from orchestrator.datasets.packs.build import Built
from orchestrator.system.files import DiskRoom
from orchestrator.system.yaml_text import BadDocument, parse_document

SHOWN_PROBLEMS = 3


def parsed(text: str) -> Definition:
    """A description from its YAML or JSON text. Raises `BadSource`."""
    try:
        return read_definition(parse_document(text))
    except BadDocument as error:
        raise BadSource(f"The description {error}.") from None


def described(document: Mapping[str, Any] | None, text: str | None) -> Definition:
    definition = parsed(text or "") if document is None else read_definition(dict(document))
    check_name(definition.name)
    return definition


class BenchmarkFiles:
    """Builds packs from descriptions. Blocking; callers use threads."""

    def __init__(self, catalogue: Catalogue, room: DiskRoom, hub: HubRecords) -> None:
        self._catalogue, self._room, self._hub = catalogue, room, hub

    def check(self, definition: Definition, files: Mapping[str, Path]) -> Preview:
        return preview(definition, Origin(files, self._catalogue, self._hub), SHOWN_PROBLEMS)

    def missing(self, definition: Definition, files: Mapping[str, Path]) -> list[str]:
        return Origin(files, self._catalogue).missing(definition)

    def build(self, definition: Definition, files: Mapping[str, Path], report: Report | None = None) -> Built:
        shown = definition.records.origin
        progress = (lambda done, total: report("build", shown, done, total)) if report else None
        with self._room.full_is_said(f"adding {definition.name!r}"):
            self._room.require(0, f"Adding {definition.name!r}")
            origin = Origin(files, self._catalogue, self._hub)
            return build_benchmark(self._catalogue.packs, definition, origin, progress, report)
