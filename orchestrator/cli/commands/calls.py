"""Commands about model calls: calls."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.commands.runs import RunArgument
from orchestrator.cli.context import command
from orchestrator.cli.view.output import JsonFlag, table
from orchestrator.cli.view.text import cost

FACTS = ("Call", "State", "Answer", "Paid by", "Ended")
NUMBERS = ("Tries", "Lost", "Replays", "Tokens in", "Tokens out", "Cost", "Waited s", "Provider s")
COLUMNS = (*FACTS[:4], *NUMBERS, FACTS[4])


def calls(
    run_id: RunArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many.")] = 1000,
    as_json: JsonFlag = False,
) -> None:
    """Show the model calls of a run: tokens, cost, and where the time went."""
    with command(as_json) as cmd:
        run = cmd.client.find_run(run_id)
        found = cmd.client.calls(str(run["id"]), limit=limit)
        cmd.out.result({"items": found}, lambda: _calls(found))


def _calls(found: list[dict[str, Any]]) -> RenderableType:
    if not found:
        return Text("No calls yet.")
    rows = [
        (
            each["call_key"],
            each["state"],
            _source(each),
            payer(each),
            each["tries"],
            each["lost_sends"],
            each["replays"],
            each["input_tokens"],
            each["output_tokens"],
            cost(each["cost_usd"]),
            f"{each['queue_s']:.1f}",
            f"{each['provider_s']:.1f}",
            each["finish_reason"] or each["error"] or "",
        )
        for each in found
    ]
    lost, unpriced = sum(each["lost_sends"] for each in found), sum(each["cost_usd"] is None for each in found)
    known = sum(each["cost_usd"] or 0.0 for each in found)
    sentence = f"{len(found)} calls, {cost(None if unpriced else known, known, unpriced)}"
    if cached := sum(each["source"] == "cached" for each in found):
        sentence += f"; {cached} of the answers were bought by other runs"
    if lost:
        sentence += f"; {lost} more sends brought no answer and may have been billed"
    return Group(table(COLUMNS, rows, right=NUMBERS), "", Text(sentence))


def payer(call: dict[str, Any]) -> str:
    """Whose key paid."""
    return f"{call['payer']} {call['payer_name']}".strip()


def _source(call: dict[str, Any]) -> str:
    """Where the answer comes from."""
    if call["state"] != "settled":
        return ""
    if call["from_run"]:
        return f"{call['source']} from run {call['from_run']}"
    return "bought, replayed" if call["replays"] else "bought"
