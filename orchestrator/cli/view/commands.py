"""Tables of command benchmarks: figures over repeats, repeats, comparisons. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.view.output import Columns, facts, records_table, status_text, table
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


def command_result(result: dict[str, Any]) -> RenderableType:
    """One run: the command, its figures, its repeats."""
    task = result["task"]
    description = facts(
        (
            ("Command", " ".join(task["argv"])),
            ("Image", f"{task['image']} {result['image_id'] or ''}".strip()),
            ("Files", ", ".join(f"{file['name']} ({file['size_bytes']} bytes)" for file in task.get("files", ()))),
            ("Instance type", result["instance_type"]),
            ("Status", status_text(result["status"])),
            *((("Measured by", "a task runner, which reports its own figures"),) if result["self_reported"] else ()),
        )
    )
    failed = [repeat for repeat in result["repeats"] if repeat["outcome"] != "passed"]
    view = Group(description, "", figures_table(result["figures"]))
    columns: Columns = {"Repeat": "number", "Outcome": "outcome", "Detail": "detail"}
    return Group(view, "", records_table(failed, columns)) if failed else view


def commands_table(runs: list[dict[str, Any]], now: datetime) -> RenderableType:
    """Runs of kind `command`, which have no score."""
    if not runs:
        return Text("No commands yet: benchyard command run --image IMAGE -- COMMAND measures one.")
    short = short_ids([str(run["id"]) for run in runs])
    columns: Columns = {
        "Run": lambda run: short[str(run["id"])],
        "Image": "image",
        "Benchmark": lambda run: ", ".join(run["benchmarks"]),
        "Status": lambda run: status_text(run["status"]),
        "Repeats": lambda run: f"{run['progress']['done']}/{run['progress']['total']}",
        "Passed": "passed",
        "Created": lambda run: ago(run["created_at"], now),
    }
    return records_table(runs, columns, right=("Repeats", "Passed"))


def figures_table(figures: list[dict[str, Any]]) -> RenderableType:
    if not figures:
        return Text("No repeat has passed: there are no figures.")
    columns: Columns = {
        "Figure": "name",
        "Repeats": "n",
        "Mean": lambda figure: value_text(figure["mean"], figure["unit"]),
        "95 % interval": interval_text,
        "Median": lambda figure: value_text(figure["median"], figure["unit"]),
    }
    return records_table(figures, columns, right=("Repeats", "Mean", "Median"))


def compare_table(comparison: dict[str, Any]) -> RenderableType:
    """One row per figure and group, each compared with another."""
    groups = comparison["groups"]
    figures = {(group["label"], figure["name"]): figure for group in groups for figure in group["figures"]}
    rows = []
    for pair in comparison["comparisons"]:
        figure, other = figures[pair["group"], pair["figure"]], figures[pair["against"], pair["figure"]]
        rows.append(
            (
                pair["figure"],
                pair["group"],
                value_text(figure["mean"], figure["unit"]),
                pair["against"],
                value_text(other["mean"], other["unit"]),
                Text(clean(pair["sentence"]), STYLES.get(pair["verdict"], "")),
            )
        )
    group_columns: Columns = {"Group": "label", "Repeats": "repeats", "Failed": "failed"}
    columns = ("Figure", "Of", "Mean", "Against", "Mean", "Verdict, ratio and 95 % interval")
    notes: list[RenderableType] = [Text(clean(note), "yellow") for note in comparison["notes"]]
    parts: list[RenderableType] = [records_table(groups, group_columns, right=("Repeats", "Failed")), ""]
    if rows:
        parts.append(table(columns, rows, right=("Mean",)))
    else:  # a single cell, or cells with nothing in common
        for group in groups:
            parts += [Text(clean(group["label"]), "bold"), figures_table(group["figures"])]
    return Group(*parts, *notes)
