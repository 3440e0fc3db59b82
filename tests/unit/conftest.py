"""Files of a few lines, for datasets and stored answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: Any, name: str = "problems.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write
