"""Commands about provider keys that callers bring: list, set, remove, rotate."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.text import Text

from orchestrator.cli.api.accounts import AccountClient
from orchestrator.cli.context import command, now
from orchestrator.cli.errors import CliError
from orchestrator.cli.view.output import JsonFlag, table
from orchestrator.cli.view.text import ago, clean

keys_app = typer.Typer(
    help="Provider keys of the workspace and of your own: list, set, remove, rotate.", no_args_is_help=False
)


@keys_app.callback(invoke_without_command=True)
def keys(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Provider keys: list (the default), set, remove, rotate."""
    if context.invoked_subcommand is None:
        list_keys(as_json=as_json)


@keys_app.command("list")
def list_keys(as_json: JsonFlag = False) -> None:
    """List keys: the end of each, and where it is sent."""
    with command(as_json) as cmd, AccountClient(cmd.connection) as client:
        found = client.keys()
        rows = [
            (
                each["id"],
                each["provider"],
                each["name"],
                each["holder"],
                f"…{each['hint']}",
                each["origin"],
                each["created_by"],
                ago(each["updated_at"], now()),
            )
            for each in found
        ]
        columns = ("Id", "Provider", "Name", "Whose", "Ends in", "Sent to", "Given by", "Changed")
        none = Text("No keys; runs use those of the service. Give one: benchyard keys set PROVIDER")
        cmd.out.result({"items": found}, lambda: table(columns, rows, right=("Id",)) if rows else none)


@keys_app.command("set")
def set_key(
    provider: Annotated[str, typer.Argument(help="The provider, such as openai.")],
    name: Annotated[str, typer.Option(help="What you call it.")] = "",
    workspace: Annotated[bool, typer.Option("--workspace", help="For all runs of the workspace; needs an admin.")] = False,
    base_url: Annotated[str | None, typer.Option(help="Where it is for; refused if the provider is elsewhere.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Give a key, read from standard input or asked for: never on the command line, where others see it."""
    secret = (typer.prompt("Key", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not secret:
        raise CliError("No key was given; type it when asked, or pipe it in: benchyard keys set openai < key.txt")
    body: dict[str, Any] = {"provider": provider, "key": secret, "name": name}
    body |= {"holder": "workspace" if workspace else "user"} | ({"base_url": base_url} if base_url else {})
    with command(as_json) as cmd, AccountClient(cmd.connection) as client:
        made = client.put_key(body)
        cmd.out.result(
            made, lambda: Text(f"Stored the key for {clean(made['provider'])} that ends in {clean(made['hint'])}.")
        )


@keys_app.command("remove")
def remove_key(
    key_id: Annotated[int, typer.Argument(help="Its id.")],
    as_json: JsonFlag = False,
) -> None:
    """Remove a key."""
    with command(as_json) as cmd, AccountClient(cmd.connection) as client:
        client.remove_key(key_id)
        cmd.out.result({"removed": key_id}, lambda: Text(f"Removed key {key_id}."))


@keys_app.command("rotate")
def rotate(as_json: JsonFlag = False) -> None:
    """Seal all stored secrets anew with the first master key; afterwards the older ones can be taken away."""
    with command(as_json) as cmd, AccountClient(cmd.connection) as client:
        done = client.rotate_keys()
        if done["unreadable"]:
            cmd.out.warn(f"{done['unreadable']} cannot be opened with the master keys that are given; the log says which.")
        cmd.out.result(done, lambda: Text(f"Sealed {done['sealed_again']} anew."))
