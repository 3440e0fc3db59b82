"""The first examples of two documents, run as they are printed, in an empty directory, by a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_cli_lifecycle import Yard

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """Processes of this machine instead of containers: the runner's image stands for the machine as it is."""
    it = Yard(tmp_path_factory.mktemp("examples") / "data")
    tools = Path(sys.executable).parent
    it.env |= {"BENCHYARD_ENGINE": "process", "BENCHYARD_DEMO_LATENCY_S": "0.1", "PATH": f"{tools}:{os.environ['PATH']}"}
    it("up")
    yield it
    it("down")


def examples(document: str) -> list[str]:
    """The blocks that are meant for a shell."""
    blocks = re.findall(r"^```\n(.*?)^```$", (DOCS / document).read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if re.search("^benchyard (batch|command) run", block, re.MULTILINE)]


@pytest.mark.parametrize(
    ("document", "place", "said"),
    [
        ("commands.md", 0, ("sum_of_squares", "wall_s", "bench.py (")),
        ("batches.md", 0, ("demo-strong", "demo-weak", "standard-1")),
        ("batches.md", 1, ("wall_s", "benchyard-runner:latest on basic", "Repeats")),
    ],
)
def test_it_works_as_printed(yard: Yard, tmp_path: Path, document: str, place: int, said: tuple[str, ...]) -> None:
    block = examples(document)[place]
    ended = subprocess.run(
        ["/bin/sh", "-e", "-c", block], cwd=tmp_path, env=yard.env, capture_output=True, text=True, timeout=1800, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for word in said:
        assert word in ended.stdout
