"""The time of day of one process, shifted while it runs, with libfaketime: no code of ours knows. Durations stay real."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.faults.service import ROOT


def library() -> str:
    done = subprocess.run([ROOT / "scripts/faketime"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class FakeTime:
    def __init__(self, file: Path) -> None:
        self._file = file
        self.shift = timedelta()
        self.set(timedelta())

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }

    def set(self, shift: timedelta) -> None:
        """Within a second, its clock differs by that much from ours."""
        self.shift = shift
        part = self._file.with_suffix(".part")
        part.write_text(f"{shift.total_seconds():+.0f}\n")
        part.replace(self._file)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.shift
