"""The run of a preset harness, as the API expects it, from what the command line says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.cli.errors import BadUsage
from orchestrator.cli.files.command_files import file_body
from orchestrator.cli.view.text import clean
from orchestrator.harnesses.presets import PRESETS, Preset, task_file, task_name


def find_preset(name: str) -> Preset:
    if name not in PRESETS:
        words = f"There is no preset {clean(name)!r}: {' or '.join(PRESETS)}."
        raise BadUsage(f"{words} For any other image: benchyard harness run.")
    return PRESETS[name]


def preset_body(name: str, task: str | None, files: Sequence[Path], arguments: Sequence[str]) -> dict[str, Any]:
    """`kind` and `harness` of the request. A task that is a file is sent along with the other files."""
    preset = find_preset(name)
    if not task:
        raise BadUsage(
            f"--harness {name} needs --task: a file ending in {' or '.join(preset.task_suffixes)}, or a task's name."
        )
    own = task_file(preset, task)
    bodies = [file_body(path, Path()) for path in ([Path(own)] if own else []) + [*files]]
    if own:
        task = bodies[0]["name"] + task[len(own) :]
    harness = {
        "image": preset.image,
        "name": task_name(task)[:100],
        "command": preset.command(task, arguments),
        "files": bodies,
        "results": {"format": preset.format.value},
    }
    return {"kind": "harness", "harness": harness}
