"""The shell blocks of the documents, executed as printed, in one session with a service and the demo models.

Runs are local processes here, so that no image is needed. Only the port and the directory differ from what is printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.document_commands import ROOT, Block, every_block
from tests.faults.service import free_ports

pytestmark = pytest.mark.slow

PRINTED = "http://127.0.0.1:8000"
BLOCKS = [block for block in every_block() if block.is_run]
REFUSALS = ('"title":', "application/problem")
"""What an answer of the API says when it is no success, which curl does not mind."""

PRINTS = {
    "benchyard command run --image": ("sum_of_squares", "wall_s", "bench.py ("),
    "benchyard batch run batch.json": ("demo-strong", "demo-weak", "standard-1"),
    "benchyard batch run commands.yaml": ("wall_s", "benchyard-runner:latest on basic", "Repeats"),
}
"""By what stands in a block: words of what it prints."""


@dataclass(frozen=True)
class Session:
    folder: Path
    env: dict[str, str]
    port: int

    def run(self, script: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(PRINTED, f"http://127.0.0.1:{self.port}")],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("reader")
    port, runner_port = free_ports(2)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHYARD_", "DATABASE_URL"))}
    env = {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "BENCHYARD_ENGINE": "process",
        "BENCHYARD_PORT": str(port),
        "BENCHYARD_RUNNER_PORT": str(runner_port),
        "BENCHYARD_DEMO_LATENCY_S": "0",
    }
    found = Session(folder, env, port)
    found.run("benchyard up")
    yield found
    found.run("benchyard down")


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_of_the_documents_works_as_printed(block: Block, session: Session) -> None:
    said = session.run(block.script)
    assert not any(word in said for word in REFUSALS), said
    for phrase, words in PRINTS.items():
        assert phrase not in block.text or all(word in said for word in words), said


def test_the_example_of_the_python_client_works(session: Session) -> None:
    said = session.run(f"python {ROOT / 'docs' / 'examples' / 'compare_models.py'}")
    assert "demo-weak compared with demo-strong" in said


def test_there_is_something_to_run() -> None:
    assert len(BLOCKS) >= 6
    assert all(any(phrase in block.text for block in BLOCKS) for phrase in PRINTS)
