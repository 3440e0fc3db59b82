"""Asks a user's Python file something in the sandbox, for a check or a trial: never in this process.

A child process of ours opens the runner's sandbox, and the sandbox runs the user's functions in processes of their own, as
in a run. The child has no environment and gets one request; what it answers is checked here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.datasets.errors import BadSource
from runner.contract.rules.python_file import PythonFile

ROOT = Path(__file__).parents[2]
WITHIN_S = 120.0
CPU_S = 5.0
MOST_ANSWERS = 200
"""How many answers one request scores."""
REPLY_BYTES = 64 << 20


def records_of(file: PythonFile) -> list[dict[str, Any]]:
    """What its function `records` gives. Raises `BadSource`."""
    rows: list[dict[str, Any]] = _asked(file, {"records": True})["records"]
    return rows


def prompts_of(file: PythonFile, records: Sequence[Mapping[str, Any]]) -> list[list[dict[str, str]]]:
    """The messages that it begins with, for each record. Raises `BadSource`."""
    prompts: list[list[dict[str, str]]] = _asked(file, {"prompts": list(records)})["prompts"]
    return prompts


def scores_of(file: PythonFile, answers: Sequence[tuple[Mapping[str, Any], str]]) -> list[dict[str, Any]]:
    """Value, passed and reason of each (record, answer), or `error`."""
    scores: list[dict[str, Any]] = _asked(file, {"answers": [[record, answer] for record, answer in answers]})["scores"]
    return scores


def _asked(file: PythonFile, request: Mapping[str, Any]) -> dict[str, Any]:
    body = json.dumps({"file": file.model_dump(mode="json"), "cpu_s": CPU_S, **request}).encode()
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "runner.items.task_trial"],
            input=body,
            capture_output=True,
            cwd="/",
            env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"},
            timeout=WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BadSource(f"The Python file took longer than {WITHIN_S:g} s; make its functions faster.") from None
    try:
        reply = json.loads(ended.stdout[:REPLY_BYTES])
    except ValueError:
        raise BadSource("The Python file could not be tried: the sandbox does not work beside this service.") from None
    if "why" in reply:
        raise BadSource(f"The Python file cannot be used: {reply['why']}.")
    return dict(reply)
