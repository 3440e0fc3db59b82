"""Harnesses that work out of the box: an image that is built here, and the command that runs a task in it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runner.contract.harness import ResultsFormat

LM_EVAL = """case $BENCHYARD_PROTOCOL in
  anthropic) model=anthropic-chat-completions url=$ANTHROPIC_BASE_URL/v1/messages ;;
  *) model=local-chat-completions url=$BENCHYARD_BASE_URL/chat/completions ;;
esac
exec lm_eval run --model $model --model_args model=benchyard,base_url=$url,num_concurrent=8,max_retries=3 \\
  --apply_chat_template --include_path . --log_samples --output_path out --tasks {task} {arguments}
"""
INSPECT = ("inspect", "eval", "--log-dir", "logs", "--display", "plain", "--log-buffer", "2")


@dataclass(frozen=True)
class Preset:
    name: str
    title: str
    format: ResultsFormat
    task_suffixes: tuple[str, ...]
    """The names of task files end with one of these."""
    command: Callable[[str, Sequence[str]], list[str] | str]
    """Takes a task and further arguments of the harness."""

    @property
    def image_name(self) -> str:
        return f"harness-{self.name}"

    @property
    def image(self) -> str:
        return f"benchyard-{self.image_name}:latest"


def _inspect(task: str, arguments: Sequence[str]) -> list[str]:
    return [*INSPECT, task, *arguments]


def _lm_eval(task: str, arguments: Sequence[str]) -> str:
    return LM_EVAL.format(task=shlex.quote(task), arguments=shlex.join(arguments))


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("inspect", "Inspect AI", ResultsFormat.INSPECT, (".py", ".ipynb"), _inspect),
        Preset("lm-eval", "lm-evaluation-harness", ResultsFormat.LM_EVAL, (".yaml", ".yml"), _lm_eval),
    )
}


def preset_harness(preset: Preset, task: str, files: Sequence[dict[str, Any]], arguments: Sequence[str]) -> dict[str, Any]:
    """The field `harness` of a request. A task that is a file is one of `files`."""
    return {
        "image": preset.image,
        "name": task_name(task)[:100],
        "command": preset.command(task, arguments),
        "files": list(files),
        "results": {"format": preset.format.value},
    }


def task_file(preset: Preset, task: str) -> str | None:
    """The file that a task is in, such as `sums.py` of `sums.py@one`; None if it is the name of a task in the image."""
    path = task.partition("@")[0]
    return path if path.endswith(preset.task_suffixes) else None


def task_name(task: str) -> str:
    """The benchmark's name: the task's own, or that of its file."""
    path, _, name = task.partition("@")
    return name or path.rsplit("/", 1)[-1].removesuffix(".py").removesuffix(".yaml").removesuffix(".yml")
