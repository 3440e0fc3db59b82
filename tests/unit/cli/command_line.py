"""The command, run in this process: fixtures for the tests of the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main


@dataclass(frozen=True)
class StreamEnd:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Benchyard = Callable[..., StreamEnd]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the developer's own settings; a data directory that does not exist; a port where nobody listens."""
    for name in ("URL", "TOKEN", "HOST", "ENGINE", "INSTANCE", "RUNNER_NETWORK"):
        monkeypatch.delenv(f"BENCHYARD_{name}", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("BENCHYARD_DATA", str(tmp_path / "cli-data"))
    monkeypatch.setenv("BENCHYARD_PORT", "9")


@pytest.fixture
def benchyard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Benchyard:
    def run(*words: str) -> StreamEnd:
        monkeypatch.setattr(sys, "argv", ["benchyard", *words])
        with pytest.raises(SystemExit) as exit_:
            main()
        said = capsys.readouterr()
        return StreamEnd(int(exit_.value.code or 0), said.out, said.err)

    return run
