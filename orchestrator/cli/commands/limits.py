"""Commands about limits: show, set, remove."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from orchestrator.cli.api.accounts import AccountClient
from orchestrator.cli.context import command
from orchestrator.cli.view.output import JsonFlag, table
from orchestrator.cli.view.text import clean, money

limits_app = typer.Typer(help="Limits of the workspace and its users: show, set, remove.", no_args_is_help=False)

WhoseArgument = Annotated[str, typer.Argument(help="`workspace`, `everyone` (each user), or a user's id.")]
COLUMNS = ("For", "Runs at once", "Spend a day", "Requests a second", "Set by")


@limits_app.callback(invoke_without_command=True)
def limits(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Limits and what is used of them (the default), set, remove."""
    if context.invoked_subcommand is not None:
        return
    with command(as_json) as cmd, AccountClient(cmd.connection) as client:
        found = client.limits()
        cmd.out.result(found, lambda: _shown(found))


@limits_app.command("set")
def set_limit(
    whose: WhoseArgument,
    runs: Annotated[int | None, typer.Option(help="Runs at once; more wait.")] = None,
    spend: Annotated[float | None, typer.Option(help="US dollars a day (UTC).")] = None,
    rate: Annotated[float | None, typer.Option(help="Requests a second.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Set all three; what is not named is not limited."""
    given = {"runs_at_once": runs, "spend_per_day_usd": spend, "requests_per_second": rate}
    with command(as_json) as cmd, AccountClient(cmd.connection) as client:
        made = client.set_limit(whose, {name: value for name, value in given.items() if value is not None})
        cmd.out.result(made, lambda: table(COLUMNS, [_row(made)]))


@limits_app.command("remove")
def remove_limit(whose: WhoseArgument, as_json: JsonFlag = False) -> None:
    """Take a limit away."""
    with command(as_json) as cmd, AccountClient(cmd.connection) as client:
        client.remove_limit(whose)
        cmd.out.result({"removed": whose}, lambda: Text(f"Removed the limit for {clean(whose)}."))


def _shown(found: dict[str, Any]) -> Group:
    used = found["workspace"]
    sentence = f"The workspace has {used['runs_now']} runs now and spent {money(used['spent_today_usd'])} today."
    if found["mine"]:
        sentence += f" You: {found['mine']['runs_now']} runs, {money(found['mine']['spent_today_usd'])}."
    rows = [_row(each) for each in found["items"]]
    return Group(table(COLUMNS, rows) if rows else Text("Nothing is limited."), "", Text(sentence))


def _row(each: dict[str, Any]) -> tuple[object, ...]:
    spend = each["spend_per_day_usd"]
    return (
        each["name"],
        _most(each["runs_at_once"]),
        "no limit" if spend is None else money(spend),
        _most(each["requests_per_second"]),
        each["updated_by"],
    )


def _most(value: object) -> object:
    return "no limit" if value is None else value
