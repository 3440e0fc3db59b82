"""`benchyard grade` as a process with a data directory of its own, and what it leaves on the engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def ours() -> set[str]:
    """Containers and networks of services that lived for one command."""
    found = set()
    for words in (
        ("ps", "--all", "--format", "{{.Names}} {{.Labels}}"),
        ("network", "ls", "--format", "{{.Name}} {{.Labels}}"),
    ):
        answer = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=60, check=True)
        found |= {line for line in answer.stdout.splitlines() if "benchyard.instance=local-" in line}
    return found


class Yard:
    """A data directory of its own, in which `benchyard grade` is used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("BENCHYARD_", "DATABASE_URL"))}
        self.env = {**kept, "BENCHYARD_DATA": str(folder / "data"), "BENCHYARD_PORT": "9"}

    def __call__(self, *words: str) -> Any:
        command = [sys.executable, "-m", "orchestrator.cli", *words, "--json"]
        ended = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=900, check=False)
        assert ended.returncode == 0, f"benchyard {' '.join(words)}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        return json.loads(ended.stdout)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "orchestrator.cli", *words]
        return subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def add(self, name: str, path: Path) -> None:
        self("datasets", "add", name, "--from", str(path))

    def grade(self, benchmark: str, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The summary, and the verdict on each answer."""
        samples, out = self.folder / f"{benchmark}.jsonl", self.folder / f"{benchmark}-verdicts.jsonl"
        samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
        summary = self("grade", "--benchmark", benchmark, "--samples", str(samples), "--out", str(out), "--engine", "docker")
        return summary, [json.loads(line) for line in out.read_text().splitlines()]
