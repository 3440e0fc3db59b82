"""Commands about costs: the model calls of a run, and the cost of calls and machines over some days."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.api.client import Json, run_path
from orchestrator.cli.commands.measuring.runs import RunArgument
from orchestrator.cli.context import command
from orchestrator.cli.view.output import Columns, JsonFlag, records_table
from orchestrator.cli.view.text import cost, money, span

HOUR_S = 3600


def _source(call: Json) -> str:
    if call["state"] != "settled":
        return ""
    if call["from_run"]:
        return f"{call['source']} from run {call['from_run']}"
    return "bought, replayed" if call["replays"] else "bought"


CALL_COLUMNS: Columns = {
    "Call": "call_key",
    "Asked": lambda call: f"{call['model']} (judge)" if call["judge"] else call["model"],
    "State": "state",
    "Answer": _source,
    "Paid by": lambda call: f"{call['payer']} {call['payer_name']}".strip(),
    "Tries": "tries",
    "Lost": "lost_sends",
    "Replays": "replays",
    "Tokens in": "input_tokens",
    "Tokens out": "output_tokens",
    "Cost": lambda call: cost(call["cost_usd"]),
    "Waited s": lambda call: f"{call['queue_s']:.1f}",
    "Provider s": lambda call: f"{call['provider_s']:.1f}",
    "Ended": lambda call: call["finish_reason"] or call["error"] or "",
}
CALL_NUMBERS = ("Tries", "Lost", "Replays", "Tokens in", "Tokens out", "Cost", "Waited s", "Provider s")


class By(StrEnum):
    DAY = "day"
    MODEL = "model"
    RUN = "run"
    BATCH = "batch"
    SCHEDULE = "schedule"


def calls(
    run_id: RunArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Maximum number of calls.")] = 1000,
    as_json: JsonFlag = False,
) -> None:
    """Show the model calls of a run: tokens, cost, and where the time was spent."""
    with command(as_json) as cmd:
        path = run_path(cmd.client.find_run_id(run_id))
        calls = cmd.client.pages(f"{path}/calls", limit=limit)
        cmd.out.result({"items": calls}, lambda: _calls_and_total(calls))


def _calls_and_total(calls: list[Json]) -> RenderableType:
    if not calls:
        return Text("No calls yet.")
    lost_sends, unpriced = sum(call["lost_sends"] for call in calls), sum(call["cost_usd"] is None for call in calls)
    known_usd = sum(call["cost_usd"] or 0.0 for call in calls)
    sentence = f"{len(calls)} calls, {cost(None if unpriced else known_usd, known_usd, unpriced)}"
    if cached := sum(call["source"] == "cached" for call in calls):
        sentence += f"; {cached} of the answers were bought by other runs"
    if lost_sends:
        sentence += f"; {lost_sends} more sends brought no answer and may have been billed"
    return Group(records_table(calls, CALL_COLUMNS, right=CALL_NUMBERS), "", Text(sentence))


def costs(
    days: Annotated[int, typer.Option(min=1, max=3660, help="Number of days to look back.")] = 30,
    by: Annotated[By, typer.Option(help="How to group machine time.")] = By.DAY,
    as_json: JsonFlag = False,
) -> None:
    """Show the cost of model calls, the machine time of runs, and that of the warm pool."""
    with command(as_json) as cmd:
        calls = cmd.client.get("/api/costs", days=days, by="model")
        machines = cmd.client.get("/api/machine-costs", days=days, by=by.value)
        cmd.out.result({"calls": calls, "machines": machines}, lambda: _costs(calls, machines, by))


def _costs(calls: Json, machines: Json, by: By) -> RenderableType:
    priced = bool(machines["vcpu_hour_usd"] or machines["gib_hour_usd"])
    hours: Columns = {
        "vCPU hours": lambda row: f"{row['vcpu_s'] / HOUR_S:.4f}",
        "GiB hours": lambda row: f"{row['gib_s'] / HOUR_S:.4f}",
        "Cost": lambda row: money(row["cost_usd"]) if priced else "–",
    }
    per_model: Columns = {"Model": "model", "Calls": "calls", "Cost": lambda row: money(row["cost_usd"])}
    idle: Columns = {
        "Day": "day",
        "Instance type": "instance_type",
        "Stood ready": lambda row: span(row["ready_s"]),
        **hours,
    }
    parts: list[RenderableType] = []
    for title, rows, columns in (
        ("Model calls", calls["items"], per_model),
        ("Machines: runs", machines["items"], {by.value.capitalize(): "key", "Runs": "runs", **hours}),
        ("Machines: runners that stood ready", machines["idle"], idle),
    ):
        right = ("Calls", "Runs", "Stood ready", *hours)
        parts += [Text(title, "bold"), records_table(rows, columns, right=right) if rows else Text("None."), ""]
    if priced:
        return Group(*parts[:-1])
    return Group(*parts, Text("Machine time has no price: set BENCHYARD_VCPU_HOUR_USD and BENCHYARD_GIB_HOUR_USD.", "dim"))
