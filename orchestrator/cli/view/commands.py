"""Command benchmarks as people read them: figures over repeats, repeats, comparisons. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.view.output import facts, status_text, table
from orchestrator.cli.view.text import MIB, ago, clean, short_ids

STYLES = {"better": "green", "worse": "red"}


def value_text(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    return f"{value / MIB:.4g} MiB" if unit == "B" else f"{value:.4g} {unit}".strip()


def interval_text(figure: dict[str, Any]) -> str:
    if figure["low"] is None:
        return "–"
    return f"{value_text(figure['low'], figure['unit'])} – {value_text(figure['high'], figure['unit'])}"


def command_result(found: dict[str, Any]) -> RenderableType:
    """One run: what was run, its figures, its repeats."""
    task = found["task"]
    about = facts(
        (
            ("Command", " ".join(task["argv"])),
            ("Image", f"{task['image']} {found['image_id'] or ''}".strip()),
            ("Files", ", ".join(f"{each['name']} ({each['size_bytes']} bytes)" for each in task.get("files", ()))),
            ("Instance type", found["instance_type"]),
            ("Status", status_text(found["status"])),
            *((("Measured by", "a task runner, which reports its own figures"),) if found["self_reported"] else ()),
        )
    )
    failed = [each for each in found["repeats"] if each["outcome"] != "passed"]
    wrong = table(("Repeat", "Outcome", "Detail"), [(each["number"], each["outcome"], each["detail"]) for each in failed])
    shown = Group(about, "", figures_table(found["figures"]))
    return Group(shown, "", wrong) if failed else shown


def commands_table(runs: list[dict[str, Any]], now: datetime) -> RenderableType:
    """Runs of kind `command`: they have no score."""
    if not runs:
        return Text("No commands yet: benchyard command run --image IMAGE -- COMMAND measures one.")
    short = short_ids([str(run["id"]) for run in runs])
    rows = [
        (
            short[str(run["id"])],
            run["image"],
            ", ".join(run["benchmarks"]),
            status_text(run["status"]),
            f"{run['progress']['done']}/{run['progress']['total']}",
            run["passed"],
            ago(run["created_at"], now),
        )
        for run in runs
    ]
    columns = ("Run", "Image", "Benchmark", "Status", "Repeats", "Passed", "Created")
    return table(columns, rows, right=("Repeats", "Passed"))


def figures_table(figures: list[dict[str, Any]]) -> RenderableType:
    if not figures:
        return Text("No repeat has passed: there are no figures.")
    rows = [
        (
            each["name"],
            each["n"],
            value_text(each["mean"], each["unit"]),
            interval_text(each),
            value_text(each["median"], each["unit"]),
        )
        for each in figures
    ]
    return table(("Figure", "Repeats", "Mean", "95 % interval", "Median"), rows, right=("Repeats", "Mean", "Median"))


def compare_table(found: dict[str, Any]) -> RenderableType:
    """A row per figure and group, each against another."""
    means = {(group["label"], each["name"]): each for group in found["groups"] for each in group["figures"]}
    rows = []
    for each in found["comparisons"]:
        one, other = means[each["group"], each["figure"]], means[each["against"], each["figure"]]
        rows.append(
            (
                each["figure"],
                each["group"],
                value_text(one["mean"], one["unit"]),
                each["against"],
                value_text(other["mean"], other["unit"]),
                Text(clean(each["sentence"]), STYLES.get(each["verdict"], "")),
            )
        )
    groups = table(
        ("Group", "Repeats", "Failed"),
        [(group["label"], group["repeats"], group["failed"]) for group in found["groups"]],
        right=("Repeats", "Failed"),
    )
    columns = ("Figure", "Of", "Mean", "Against", "Mean", "Verdict, ratio and 95 % interval")
    notes: list[RenderableType] = [Text(clean(note), "yellow") for note in found["notes"]]
    parts: list[RenderableType] = [groups, ""]
    if rows:
        parts.append(table(columns, rows, right=("Mean",)))
    else:  # a single cell, or cells that have nothing in common
        for group in found["groups"]:
            parts += [Text(clean(group["label"]), "bold"), figures_table(group["figures"])]
    return Group(*parts, *notes)
