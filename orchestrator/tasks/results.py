"""Converts what task runners report into results of the run. Pure. None of it comes from our own kernel readings."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from orchestrator.commands.service import REPEAT
from orchestrator.errors import Invalid
from orchestrator.tasks.schemas import RepeatReport
from runner.contract.commands import Better, CommandFile, CommandTask, Figure, RepeatFacts
from runner.contract.events import ItemResult, Outcome, Usage

EXCERPT = 8000
GIB = float(1 << 30)


def items_of(task: CommandTask, reports: Sequence[RepeatReport], stored: Collection[int]) -> list[ItemResult]:
    """The new repeats, in order. A repeat that was reported before keeps its first result."""
    by_number = {report.repeat: report for report in reports}
    if len(by_number) != len(reports):
        raise Invalid("results: each repeat may be reported once in a message")
    if beyond := [number for number in by_number if number > task.repeats]:
        raise Invalid(f"results: this task has no repeat {beyond[0]}; it has {task.repeats}")
    return [_item(task, by_number[number]) for number in sorted(by_number) if number not in stored]


def _item(task: CommandTask, report: RepeatReport) -> ItemResult:
    end = f"exit {report.exit_code}" if report.exit_code >= 0 else f"signal {-report.exit_code}"
    outcome, detail = (Outcome.PASSED, "") if report.exit_code == 0 else (Outcome.RUNTIME_ERROR, end)
    if report.timed_out:
        outcome, detail = Outcome.TIME_LIMIT, f"ended after {task.timeout_s:g} s, its time limit"
    rules = {rule.name: rule for rule in task.figures if rule.name}
    figures = [
        Figure(
            name=figure.name,
            value=figure.value,
            unit=rules[figure.name].unit if figure.name in rules else figure.unit,
            better=rules[figure.name].better if figure.name in rules else Better(figure.better),
        )
        for figure in report.figures
    ]
    return ItemResult(
        benchmark=task.name,
        problem_id=REPEAT,
        sample_index=report.repeat - 1,
        outcome=outcome,
        detail=detail,
        usage=Usage(cpu_s=report.user_s + report.system_s, wall_s=report.wall_s, peak_bytes=report.peak_bytes),
        exit=end,
        repeat=RepeatFacts(
            exit_code=report.exit_code if report.exit_code >= 0 else None,
            signal=-report.exit_code if report.exit_code < 0 else None,
            user_s=report.user_s,
            system_s=report.system_s,
            figures=figures,
            output=report.output[:EXCERPT],
            output_bytes=len(report.output.encode("utf-8", "replace")),
            self_reported=True,
        ),
    )


def machine_use(items: Sequence[ItemResult]) -> tuple[float, float]:
    """(CPU seconds, GiB seconds) that these repeats reportedly used, for the costs of the run."""
    cpu_s = sum(item.usage.cpu_s for item in items)
    return cpu_s, sum(item.usage.peak_bytes / GIB * item.usage.wall_s for item in items)


def shell_script(task: CommandTask) -> str:
    """One repeat as a script for sh: directory, files, variables, then the program."""
    lines = ["#!/bin/sh", f"# One repeat of a command benchmark, image {task.image!r}"]
    command = f"exec {shlex.join(task.argv)}"
    if task.files:
        lines += ['dir=$(mktemp -d) && cd "$dir" || exit 126', *(_written(file) for file in task.files)]
        command = f'code=0; {shlex.join(task.argv)} || code=$?\ncd / && rm -rf "$dir"; exit $code'
    elif task.workdir:
        lines.append(f"cd {shlex.quote(task.workdir)} || exit 126")
    lines += [f"export {name}={shlex.quote(value)}" for name, value in task.env.items()]
    return "\n".join([*lines, command, ""])


def _written(file: CommandFile) -> str:
    name, folder = shlex.quote(file.name), file.name.rpartition("/")[0]
    prepare = f"mkdir -p {shlex.quote(folder)} && " if folder else ""
    mode = f" && chmod +x {name}" if file.executable else ""
    return f"{{ {prepare}printf %s {shlex.quote(file.content)} | base64 -d >{name}{mode}; }} || exit 126"
