"""Commands about named API tokens: list, create, revoke."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from orchestrator.cli.context import command, now
from orchestrator.cli.errors import CliError
from orchestrator.cli.view.output import JsonFlag, table
from orchestrator.cli.view.text import ago, clean
from orchestrator.scopes import Scope

tokens_app = typer.Typer(help="Named API tokens: list, create, revoke.", no_args_is_help=False)


@tokens_app.callback(invoke_without_command=True)
def tokens(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Named API tokens: list (the default), create, revoke."""
    if context.invoked_subcommand is None:
        list_tokens(as_json=as_json)


@tokens_app.command("list")
def list_tokens(as_json: JsonFlag = False) -> None:
    """List named tokens."""
    with command(as_json) as cmd:
        found = cmd.client.tokens()
        rows = [
            (
                each["id"],
                each["name"],
                each["scope"],
                each["owner"] or "the installation",
                ago(each["created_at"], now()),
                "expired" if each["expired"] else (each["expires_at"] or "never")[:10],
                ago(each["last_used_at"], now()) if each["last_used_at"] else "never",
            )
            for each in found
        ]
        columns = ("Id", "Name", "Scope", "Made by", "Created", "Expires", "Last used")
        none = Text("No named tokens. Make one: benchyard tokens create NAME")
        cmd.out.result({"items": found}, lambda: table(columns, rows, right=("Id",)) if rows else none)


@tokens_app.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="Who or what will use it.")],
    scope: Annotated[
        Scope, typer.Option(help="read: look; run: also start and stop runs; schedule: also schedule; admin: everything.")
    ] = Scope.READ,
    days: Annotated[int | None, typer.Option(help="Days until it expires. Default: never.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a token and print it: the only time it is shown."""
    body: dict[str, Any] = {"name": name, "scope": scope.value}
    with command(as_json) as cmd:
        made = cmd.client.create_token(body | ({"expires_in_days": days} if days is not None else {}))
        cmd.out.result(made, lambda: Text(clean(made["token"])))
        cmd.out.note("It is shown only now. Send it as `Authorization: Bearer ...`, or set BENCHYARD_TOKEN.")


@tokens_app.command("revoke")
def revoke_token(
    token: Annotated[str, typer.Argument(help="Its name or id.")],
    as_json: JsonFlag = False,
) -> None:
    """Revoke a token; who uses it is locked out at once."""
    with command(as_json) as cmd:
        found = cmd.client.tokens()
        named = [each for each in found if each["name"] == token] or [each for each in found if str(each["id"]) == token]
        if not named:
            raise CliError(f"There is no token {token!r}; `benchyard tokens list` shows those there are.")
        cmd.client.revoke_token(named[0]["id"])
        cmd.out.result({"revoked": named[0]["id"]}, lambda: Text(f"Revoked {clean(named[0]['name'])}."))
