"""The process engine runs the runner of this very installation."""

from __future__ import annotations

from pathlib import Path

import runner
from orchestrator.engines.process.engine import ProcessEngineConfig


def test_the_source_root_holds_the_runner() -> None:
    config = ProcessEngineConfig(instance="test", root=Path("unused"))
    assert Path(runner.__file__).parent == config.source_root / "runner"
