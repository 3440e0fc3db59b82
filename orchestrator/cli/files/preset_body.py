"""The run of a preset harness, as the API expects it, from what the command line says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orchestrator.cli.errors import BadUsage
from orchestrator.cli.files.batch_config import read_config
from orchestrator.cli.files.command_files import file_body, with_paths_read
from orchestrator.cli.view.text import clean
from orchestrator.harnesses.presets import PRESETS, Preset, preset_harness, task_file

DESCRIPTIONS = (".json", ".yaml", ".yml")


def find_preset(name: str) -> Preset:
    if name not in PRESETS:
        words = f"There is no preset {clean(name)!r}: {' or '.join(PRESETS)}."
        raise BadUsage(f"{words} For any other image: benchyard harness run.")
    return PRESETS[name]


def harness_body(
    name: str | None, task: str | None, files: Sequence[Path], arguments: Sequence[str]
) -> dict[str, Any] | None:
    """The field `harness` of a schedule: of a preset, or of a JSON or YAML file that describes any other harness."""
    if name is None:
        if task is not None or files or arguments:
            raise BadUsage("--task, --file and arguments after -- belong to --harness.")
        return None
    if not name.endswith(DESCRIPTIONS):
        return dict(preset_body(name, task, files, arguments)["harness"])
    if task is not None or files or arguments:
        raise BadUsage(f"{clean(name)} describes the whole harness: its command, task and files belong in that file.")
    return dict(with_paths_read(read_config(Path(name)), Path(name).parent))


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
    return {"kind": "harness", "harness": preset_harness(preset, task, bodies, arguments)}
