"""Commands about what there is: benchmarks, fleet. Models are in `model_commands`."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType

from orchestrator.cli.context import command, now
from orchestrator.cli.view.output import JsonFlag, facts, table
from orchestrator.cli.view.text import ago, size


def benchmarks(as_json: JsonFlag = False) -> None:
    """List the benchmarks that can be run here."""
    with command(as_json) as cmd:
        found = cmd.client.benchmarks()
        rows = [
            (
                f"{each['name']} (default)" if each["default"] else each["name"],
                each["problems"],
                ", ".join(f"{count} {name}" for name, count in each["difficulties"].items()),
                _window(each),
                each["licence"],
                each["description"],
            )
            for each in found
        ]
        columns = ("Benchmark", "Problems", "Difficulties", "Dates", "Licence", "Description")
        cmd.out.result({"items": found}, lambda: table(columns, rows, right=("Problems",)))


def fleet(as_json: JsonFlag = False) -> None:
    """Show the engine, what it can hold, what runs now, and why something waits."""
    with command(as_json) as cmd:
        state = cmd.client.fleet()
        cmd.out.result(state, lambda: _fleet(state))


def _fleet(state: dict[str, Any]) -> RenderableType:
    engine, capacity = state["engine"], state["capacity"]
    reach = engine["version"] if engine["reachable"] else f"does not answer: {engine['error'] or 'not yet'}"
    parts: list[RenderableType] = [
        facts(
            (
                ("Engine", f"{engine['name']} {reach}"),
                ("Isolation", engine["isolation"]),
                ("Instances", f"{capacity['used_instances']} of {capacity['max_instances']}"),
                ("vCPU", f"{capacity['used_vcpu']:g} of {_number(capacity['vcpu'])}"),
                ("Memory", f"{size(capacity['used_memory_bytes'])} of {size(capacity['memory_bytes'])}"),
                ("Attention", state["banner"]),
            )
        ),
        "",
        table(
            ("Instance type", "vCPU", "Memory", "Disk", "In use", "Ready", "At most", "Fits"),
            [
                (
                    f"{each['name']} (default)" if each["default"] else each["name"],
                    f"{each['vcpu']:g}",
                    size(each["memory_bytes"]),
                    f"{each['disk_bytes'] / 1e9:g} GB",
                    each["in_use"],
                    each["ready"],
                    "–" if each["max_instances"] is None else each["max_instances"],
                    "yes" if each["fits"] else each["why_not"],
                )
                for each in state["instance_types"]
            ],
            right=("vCPU", "Memory", "Disk", "In use", "Ready", "At most"),
        ),
    ]
    if state["containers"]:
        rows = [
            (each["name"], each["state"], _number(each["cpu_s"]), f"{size(each['memory_bytes'])}")
            for each in state["containers"]
        ]
        parts += ["", table(("Container", "State", "CPU seconds", "Memory"), rows, right=("CPU seconds", "Memory"))]
    if state["waiting"]:
        rows = [(each["run_id"], each["instance_type"], ago(each["since"], now()), each["why"]) for each in state["waiting"]]
        parts += ["", table(("Waiting run", "Instance type", "Since", "Why"), rows)]
    return Group(*parts)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _window(benchmark: dict[str, Any]) -> str:
    first, last = benchmark["first_date"], benchmark["last_date"]
    return f"{first} to {last}" if first and last else "–"
