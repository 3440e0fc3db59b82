"""What became of every repeat: JSON lines, appended as they come, so that a stopped run can be continued; and the table."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.faults.fault import Fault
from tests.faults.service import ROOT

_LOCK = threading.Lock()
BROKEN = {"I4": "later than the limit", "fault": "the fault's own check failed", "scene": "no service"}


@dataclass(frozen=True)
class Result:
    fault: str
    """The fault's key."""
    database: str
    repeat: int
    seed: str
    seconds: float | None
    """Until it was right again; None if nothing had to recover."""
    broken: dict[str, str] = field(default_factory=dict)
    """Invariant -> what was seen; `fault` where the fault could not be carried out or its own check failed."""
    lost: dict[str, float] = field(default_factory=dict)
    skipped: str = ""
    """Why it could not be carried out on this machine."""
    revision: str = ""
    load: float = 0.0
    """Of the machine, at its end: processes that want a processor."""

    @property
    def survived(self) -> bool:
        return not self.broken and not self.skipped


def append(path: Path, result: Result) -> None:
    with _LOCK, path.open("a") as file:
        file.write(json.dumps(asdict(result)) + "\n")


def read(path: Path) -> list[Result]:
    if not path.exists():
        return []
    return [Result(**json.loads(line)) for line in path.read_text().splitlines() if line.strip()]


def revision() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def machine() -> str:
    model = next(
        (line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    memory = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    version = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return f"{os.cpu_count()} cores ({model}), {memory / 2**20:.0f} GiB, Linux {platform.release()}, Docker {version}"


def conditions(results: Iterable[Result]) -> str:
    """Where and of what the results were measured, in a sentence."""
    found = list(results)
    loads = sorted(result.load for result in found if result.load)
    busy = f", load {statistics.median(loads):.0f} (median; {loads[-1]:.0f} at most)" if loads else ""
    return f"Revision {', '.join(sorted({result.revision for result in found}))}; {machine()}{busy}."


def as_table(results: Iterable[Result], faults: Iterable[Fault]) -> str:
    by_row: Mapping[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        by_row[result.fault, result.database].append(result)
    lines = [
        "| | fault | database | repeats | survived | median | worst | limit | shortened | lost or broken |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for fault in faults:
        for database in fault.databases:
            if found := by_row.get((fault.key, database)):
                lines.append(_row(fault, database, found))
    return "\n".join(lines) + "\n"


def _row(fault: Fault, database: str, results: list[Result]) -> str:
    done = [result for result in results if not result.skipped]
    seconds = [result.seconds for result in done if result.seconds is not None]
    median, worst = (f"{each(seconds):.1f} s" if seconds else "–" for each in (statistics.median, max))
    name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[database]
    limit = f"{fault.settle_s:g} s" if seconds else "–"
    cells = [fault.code, fault.name, name, len(done), sum(result.survived for result in done), median, worst, limit]
    return "| " + " | ".join(map(str, [*cells, fault.shortened or "–", _losses(results)])) + " |"


def _losses(results: list[Result]) -> str:
    lost: dict[str, float] = defaultdict(float)
    broken: dict[str, int] = defaultdict(int)
    for result in results:
        for what, count in result.lost.items():
            lost[what] += count
        for what in result.broken:
            broken[what] += 1
    words: list[Any] = [f"{BROKEN.get(what, what + ' broken')} in {count}" for what, count in sorted(broken.items())]
    words += [f"{count:g} {what}" for what, count in sorted(lost.items()) if count]
    words += sorted({result.skipped for result in results if result.skipped})
    return "; ".join(words) or "nothing"
