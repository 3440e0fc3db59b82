"""Records of the hub for descriptions: which splits a description names, fetched into the cache of hub files."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.benchmarks.definition import Records
from orchestrator.datasets.fetching.download import AddressRules
from orchestrator.datasets.fetching.hub_files import Report, fetch_splits, trim
from orchestrator.datasets.fetching.sources import HubSplits
from orchestrator.system.files import DiskRoom

TEST = "test"


@dataclass(frozen=True)
class HubPart:
    """The files of one config, at one commit."""

    config: str | None
    commit: str
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class HubRecords:
    """Fetches records. `judge` says which addresses may be called; without it, all may."""

    data_dir: Path
    room: DiskRoom
    judge: AddressRules | None = None
    now: Callable[[], float] = time.time

    def fetch(self, records: Records, report: Report | None = None) -> list[HubPart]:
        """Blocking. Raises `BadSource` or `DownloadFailed`. All parts have the commit of the first."""
        assert records.hub is not None
        parts: list[HubPart] = []
        try:
            for config in records.configs:
                revision = parts[0].commit if parts else records.revision
                wanted = HubSplits(records.hub, config, (records.split or TEST,), revision)
                fetched = fetch_splits(self.data_dir, wanted, report=report, room=self.room, judge=self.judge)
                parts.append(HubPart(config, fetched.dataset.commit, tuple(fetched.all_paths)))
        finally:
            trim(self.data_dir, self.now())
        return parts
