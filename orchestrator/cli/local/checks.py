"""One check of the doctor: its verdict, and a sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass

from orchestrator.cli.view.text import clean

OK, WARN, BAD = "ok", "warn", "bad"


@dataclass(frozen=True)
class Check:
    name: str
    verdict: str
    """`ok`, `warn` (works with restrictions) or `bad` (runs cannot work)."""
    sentence: str


def level_check(name: str, output: str, *, needed: bool) -> Check:
    """Parses the line that `python -m runner.sandbox` prints."""
    line = next((line for line in output.splitlines() if line.startswith("{")), "")
    if not line:
        why = clean(output.strip().splitlines()[-1]) if output.strip() else "the runner's code is not installed here"
        return Check(name, BAD if needed else WARN, f"Not known: {why}.")
    level = json.loads(line)
    if level["name"] == "none":
        return Check(name, BAD if needed else WARN, clean(level["sentence"]))
    return Check(name, OK if level["name"] == "full" else WARN, clean(level["sentence"]))
