"""The benchmarks of this installation, the selection of problems for runs, and the problems themselves.

This is the interface for the API, the runner API and the dashboard. Everything here blocks (callers use threads) and is
thread-safe. Building and downloading happen elsewhere, except for the bundled sample.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from orchestrator.datasets.errors import BadSource, PackDamaged, UnknownBenchmark
from orchestrator.datasets.formats.published.livecodebench import LiveCodeBench
from orchestrator.datasets.packs.build import SUFFIX, build, pack_path
from orchestrator.datasets.packs.pack import Entry, LabelledAnswer, Pack
from orchestrator.datasets.packs.selection import Selection, choose, flaw
from orchestrator.datasets.packs.writer import sweep
from orchestrator.datasets.preview import Preview, Statistics, shortened, spread, statistics
from runner.contract.rules.grading import GradingRules

SAMPLE = "sample"
SAMPLE_FILE = Path(__file__).parent / "sample" / "problems.jsonl"
PREFERRED = "livecodebench"

_SAMPLE_FORMAT = LiveCodeBench(
    description="A few small programming problems that come with Benchyard, to try it out.",
    licence="Apache-2.0",
    origin="bundled",
)


@dataclass(frozen=True)
class BenchmarkInfo:
    """A benchmark that can be run."""

    name: str
    adapter: str
    pack_digest: str
    problems: int
    difficulties: dict[str, int]
    window: tuple[date, date] | None
    description: str
    licence: str
    source: str
    left_out: tuple[str, ...] = ()
    """Records of the source that cannot be scored, with position and reason."""
    revision: str = ""
    """The commit that the source files are from, if they have one."""
    files: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of each source file."""
    definition: dict[str, Any] | None = None
    rules: GradingRules | None = None
    labelled: tuple[LabelledAnswer, ...] = ()


class Catalogue:
    """The packs under `<data_dir>/packs`."""

    def __init__(self, data_dir: Path) -> None:
        self.packs = data_dir / "packs"
        self._lock = threading.Lock()
        self._open: dict[str, tuple[tuple[int, int, int], Pack]] = {}

    def prepare(self) -> None:
        """Builds the bundled sample and removes the leftovers of killed builds."""
        self.packs.mkdir(parents=True, exist_ok=True)
        sweep(self.packs)
        wanted = hashlib.sha256(SAMPLE_FILE.read_bytes()).hexdigest()
        try:
            current = self._pack(SAMPLE).facts.source_sha256
        except (UnknownBenchmark, PackDamaged):
            current = None
        if current != wanted:
            build(self.packs, SAMPLE, _SAMPLE_FORMAT, [SAMPLE_FILE])

    def benchmarks(self) -> list[BenchmarkInfo]:
        """All usable benchmarks, by name. Damaged packs are left out (see `damaged`)."""
        found = []
        for name in self._names():
            try:
                found.append(_info(self._pack(name)))
            except (PackDamaged, UnknownBenchmark):
                continue
        return found

    def damaged(self) -> dict[str, str]:
        """Packs that cannot be opened, with the reason."""
        found = {}
        for name in self._names():
            try:
                self._pack(name)
            except PackDamaged as error:
                found[name] = error.detail
            except UnknownBenchmark:
                continue
        return found

    def get(self, name: str) -> BenchmarkInfo:
        return _info(self._pack(name))

    def default_benchmark(self) -> str:
        return PREFERRED if pack_path(self.packs, PREFERRED).exists() else SAMPLE

    def choose(self, name: str, selection: Selection) -> list[str]:
        """The ids of the selected problems; the same pack and selection always give the same ids."""
        return choose(name, self._pack(name).entries, selection)

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The index entry of each problem (difficulty, date, platform, category, title), in pack order."""
        return self._pack(name).entries

    def flagged(self, name: str) -> dict[str, str]:
        """Problems known to be faulty, with the reason."""
        return {entry.id: reason for entry in self._pack(name).entries if (reason := flaw(entry))}

    def records(self, name: str, problem_ids: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yields the problems in the given order, in the format of the benchmark's adapter, one at a time in memory."""
        return self._pack(name).records(problem_ids)

    def small_record(self, name: str, pack_digest: str, problem_id: str, most_bytes: int) -> dict[str, Any] | None:
        """The record of a problem of this very pack; None if the pack is another, or the record is larger."""
        pack = self._pack(name)
        return pack.small_record(problem_id, most_bytes) if pack.digest == pack_digest else None

    def statistics(self, name: str) -> Statistics:
        """Numbers of problems by difficulty, category, platform and date."""
        return statistics(self._pack(name).entries)

    def preview(self, name: str, count: int) -> list[Preview]:
        """Some problems from all over the pack, their records cut to a readable size."""
        pack = self._pack(name)
        by_id = {entry.id: entry for entry in pack.entries}
        ids = spread(list(by_id), count)
        return [
            Preview(by_id[problem_id], shortened(record)) for problem_id, record in zip(ids, pack.records(ids), strict=True)
        ]

    def verify(self, name: str) -> None:
        """Reads the whole pack and compares its digest; raises `PackDamaged` if they differ."""
        self._pack(name).verify()

    def remove(self, name: str) -> None:
        """Deletes a pack. Runs that already have its problems keep them; the sample is rebuilt at the next start."""
        path = self._path(name)
        try:
            path.unlink()
        except FileNotFoundError:
            raise UnknownBenchmark(name, self._names()) from None

    def _names(self) -> list[str]:
        return sorted(path.name.removesuffix(SUFFIX) for path in self.packs.glob(f"[a-z]*{SUFFIX}"))

    def _path(self, name: str) -> Path:
        try:
            return pack_path(self.packs, name)
        except BadSource:
            raise UnknownBenchmark(name, self._names()) from None

    def _pack(self, name: str) -> Pack:
        path = self._path(name)
        try:
            status = path.stat()
        except FileNotFoundError:
            raise UnknownBenchmark(name, self._names()) from None
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        with self._lock:
            known = self._open.get(name)
        if known and known[0] == version:
            return known[1]
        pack = Pack.open(path)
        with self._lock:
            self._open[name] = (version, pack)
        return pack


def _info(pack: Pack) -> BenchmarkInfo:
    facts = pack.facts
    return BenchmarkInfo(
        name=facts.name,
        adapter=facts.adapter,
        pack_digest=pack.digest,
        problems=len(pack),
        difficulties=pack.difficulties,
        window=pack.window,
        description=facts.description,
        licence=facts.licence,
        source=facts.source,
        left_out=facts.left_out,
        revision=facts.revision,
        files=facts.files,
        definition=facts.definition,
        rules=facts.rules,
        labelled=facts.labelled,
    )
