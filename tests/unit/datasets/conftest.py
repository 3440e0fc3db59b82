"""Records and files for dataset tests. Real data is read from beside the project and never copied into it."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("BENCHYARD_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared() -> Path:
    assert SHARED.is_dir(), f"the real benchmark data is not at {SHARED}; set BENCHYARD_SHARED_DATA"
    return SHARED


def encoded(tests: Any) -> str:
    """Private tests the way LiveCodeBench packs them."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def lcb_record(problem_id: str = "p1", **changes: Any) -> dict[str, Any]:
    return {
        "question_title": f"Title of {problem_id}",
        "question_content": "Print the sum.",
        "platform": "atcoder",
        "question_id": problem_id,
        "contest_id": "c1",
        "contest_date": "2024-05-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([{"input": "1 2", "output": "3", "testtype": "stdin"}]),
        "private_test_cases": encoded([{"input": "4 5\n", "output": "9\n", "testtype": "stdin"}]),
        "metadata": "{}",
        **changes,
    }


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: Any, name: str = "problems.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write
