"""Commands about costs: what model calls cost, what runs used of machines, and what stood ready meanwhile."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.context import command
from orchestrator.cli.view.output import JsonFlag, table
from orchestrator.cli.view.text import money, span

HOUR_S = 3600


class By(StrEnum):
    DAY = "day"
    MODEL = "model"
    RUN = "run"
    BATCH = "batch"
    SCHEDULE = "schedule"


def costs(
    days: Annotated[int, typer.Option(min=1, max=3660, help="Of the last so many days.")] = 30,
    by: Annotated[By, typer.Option(help="How machine time is summed up.")] = By.DAY,
    as_json: JsonFlag = False,
) -> None:
    """Show what model calls cost, what runs used of machines, and what runners used that stood ready."""
    with command(as_json) as cmd:
        calls = cmd.client.costs(days=days, by="model")
        machines = cmd.client.machine_costs(days=days, by=by.value)
        cmd.out.result({"calls": calls, "machines": machines}, lambda: _shown(calls, machines, by))


def _shown(calls: dict[str, Any], machines: dict[str, Any], by: By) -> RenderableType:
    parts: list[RenderableType] = [Text("Model calls", "bold"), _calls(calls), "", Text("Machines: runs", "bold")]
    parts += [_machines(machines, by), "", Text("Machines: runners that stood ready", "bold"), _idle(machines)]
    if not machines["vcpu_hour_usd"] and not machines["gib_hour_usd"]:
        parts += ["", Text("Machine time has no price: BENCHYARD_VCPU_HOUR_USD and BENCHYARD_GIB_HOUR_USD set one.", "dim")]
    return Group(*parts)


def _calls(calls: dict[str, Any]) -> RenderableType:
    if not calls["items"]:
        return Text("None.")
    rows = [(each["model"], each["calls"], money(each["cost_usd"])) for each in calls["items"]]
    return table(("Model", "Calls", "Cost"), rows, right=("Calls", "Cost"))


def _machines(machines: dict[str, Any], by: By) -> RenderableType:
    if not machines["items"]:
        return Text("None.")
    rows = [
        (each["key"], each["runs"], *_hours(each), money(each["cost_usd"]) if _priced(machines) else "–")
        for each in machines["items"]
    ]
    return table((by.value.capitalize(), "Runs", *HOURS, "Cost"), rows, right=("Runs", *HOURS, "Cost"))


def _idle(machines: dict[str, Any]) -> RenderableType:
    if not machines["idle"]:
        return Text("None.")
    rows = [
        (
            each["day"],
            each["instance_type"],
            span(each["ready_s"]),
            *_hours(each),
            money(each["cost_usd"]) if _priced(machines) else "–",
        )
        for each in machines["idle"]
    ]
    columns = ("Day", "Instance type", "Stood ready", *HOURS, "Cost")
    return table(columns, rows, right=("Stood ready", *HOURS, "Cost"))


HOURS = ("vCPU hours", "GiB hours")


def _hours(each: dict[str, Any]) -> tuple[str, str]:
    return f"{each['vcpu_s'] / HOUR_S:.4f}", f"{each['gib_s'] / HOUR_S:.4f}"


def _priced(machines: dict[str, Any]) -> bool:
    return bool(machines["vcpu_hour_usd"] or machines["gib_hour_usd"])
