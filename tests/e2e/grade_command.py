"""`benchyard grade` as a process with a data directory of its own, and what it leaves on the engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


class Yard:
    """A data directory of its own, in which `benchyard grade` is used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("BENCHYARD_", "DATABASE_URL"))}
        self.names: set[str] = set()
        """Of the services that lived for one command, which are also those of their directories."""
        self.env = {**kept, "BENCHYARD_DATA": str(folder / "data"), "BENCHYARD_PORT": "9"}

    def __call__(self, *words: str) -> Any:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            command = self.start(*words, "--json", stdout=out, stderr=err)
            while command.poll() is None:
                self.look()
                time.sleep(0.05)
            out.seek(0), err.seek(0)
            said = out.read()
            assert command.returncode == 0, f"benchyard {' '.join(words)}: {command.returncode}\n{said}\n{err.read()}"
            return json.loads(said)

    def start(self, *words: str, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "orchestrator.cli", *words]
        return subprocess.Popen(command, env=self.env, stdout=stdout, stderr=stderr, text=True)

    def look(self) -> None:
        self.names |= {path.name for path in (self.folder / "data").glob("local-*")}

    def left(self) -> set[str]:
        """Containers and networks of these services."""
        self.look()
        found = set()
        for words in (
            ("ps", "--all", "--format", "{{.Names}} {{.Labels}}"),
            ("network", "ls", "--format", "{{.Name}} {{.Labels}}"),
        ):
            answer = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=600, check=True)
            lines = answer.stdout.splitlines()
            found |= {line for line in lines for name in self.names if f"benchyard.instance={name}" in line}
        return found

    def add(self, name: str, path: Path) -> None:
        self("datasets", "add", name, "--from", str(path))

    def grade(self, benchmark: str, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The summary, and the verdict on each answer."""
        samples, out = self.folder / f"{benchmark}.jsonl", self.folder / f"{benchmark}-verdicts.jsonl"
        samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
        summary = self("grade", "--benchmark", benchmark, "--samples", str(samples), "--out", str(out), "--engine", "docker")
        return summary, [json.loads(line) for line in out.read_text().splitlines()]
