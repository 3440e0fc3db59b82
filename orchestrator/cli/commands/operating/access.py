"""Commands about access: named API tokens, provider keys, limits, the audit log."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Group
from rich.text import Text

from orchestrator.cli.api.client import Json, given
from orchestrator.cli.context import command, command_group, now
from orchestrator.cli.errors import CliError
from orchestrator.cli.view.output import Columns, JsonFlag, records_table
from orchestrator.cli.view.text import ago, clean, money
from orchestrator.scopes import Scope

TOKEN_COLUMNS: Columns = {
    "Id": "id",
    "Name": "name",
    "Scope": "scope",
    "Created by": lambda token: token["owner"] or "the installation",
    "Created": lambda token: ago(token["created_at"], now()),
    "Expires": lambda token: "expired" if token["expired"] else (token["expires_at"] or "never")[:10],
    "Last used": lambda token: ago(token["last_used_at"], now()) if token["last_used_at"] else "never",
}
KEY_COLUMNS: Columns = {
    "Id": "id",
    "Provider": "provider",
    "Name": "name",
    "Owner": "holder",
    "Ends in": lambda key: f"…{key['hint']}",
    "Sent to": "origin",
    "Created by": "created_by",
    "Changed": lambda key: ago(key["updated_at"], now()),
}
LIMIT_COLUMNS: Columns = {
    "For": "name",
    "Runs at once": lambda limit: _or_no_limit(limit["runs_at_once"]),
    "Spend a day": lambda limit: _or_no_limit(limit["spend_per_day_usd"], money),
    "Requests a second": lambda limit: _or_no_limit(limit["requests_per_second"]),
    "Set by": "updated_by",
}
AUDIT_COLUMNS: Columns = {
    "When": lambda entry: ago(entry["at"], now()),
    "Who": lambda entry: entry["actor"] or entry["actor_kind"],
    "What": "action",
    "Object": "object_id",
    "Outcome": lambda entry: entry["status"] or "done",
    "From": "address",
    "Request": "request_id",
}

tokens_app = command_group("Named API tokens: list (the default), create, revoke.")
keys_app = command_group("Provider keys of the workspace and your own: list (the default), set, remove, rotate.")
limits_app = typer.Typer(help="Limits of the workspace and its users: show (the default), set, remove.")
audit_app = typer.Typer(help="The audit log: who changed what, when, from where.")


@tokens_app.command("list")
def list_tokens(as_json: JsonFlag = False) -> None:
    """List named tokens."""
    with command(as_json) as cmd:
        empty = "No named tokens. Create one: benchyard tokens create NAME"
        cmd.out.items(cmd.client.items("/api/tokens"), TOKEN_COLUMNS, right=("Id",), empty=empty)


@tokens_app.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="Who or what will use it.")],
    scope: Annotated[
        Scope, typer.Option(help="read: look; run: also start and stop runs; schedule: also schedule; admin: everything.")
    ] = Scope.READ,
    days: Annotated[int | None, typer.Option(help="Days until it expires. Default: never.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Create a token and print it: the only time it is shown."""
    with command(as_json) as cmd:
        created = cmd.client.post("/api/tokens", given(name=name, scope=scope.value, expires_in_days=days))
        cmd.out.result(created, clean(created["token"]))
        cmd.out.note("It is shown only now. Send it as `Authorization: Bearer ...`, or set BENCHYARD_TOKEN.")


@tokens_app.command("revoke")
def revoke_token(token: Annotated[str, typer.Argument(help="Its name or id.")], as_json: JsonFlag = False) -> None:
    """Revoke a token; it stops working at once."""
    with command(as_json) as cmd:
        tokens = cmd.client.items("/api/tokens")
        matches = [row for row in tokens if row["name"] == token] or [row for row in tokens if str(row["id"]) == token]
        if not matches:
            raise CliError(f"There is no token {token!r}; `benchyard tokens list` lists the tokens.")
        cmd.client.delete(f"/api/tokens/{matches[0]['id']}")
        cmd.out.result({"revoked": matches[0]["id"]}, f"Revoked {clean(matches[0]['name'])}.")


@keys_app.command("list")
def list_keys(as_json: JsonFlag = False) -> None:
    """List keys: the last characters of each, and where it is sent."""
    with command(as_json) as cmd:
        empty = "No keys: runs use those of the service. Add one: benchyard keys set PROVIDER"
        cmd.out.items(cmd.client.items("/api/keys"), KEY_COLUMNS, right=("Id",), empty=empty)


@keys_app.command("set")
def set_key(
    provider: Annotated[str, typer.Argument(help="The provider, such as openai.")],
    name: Annotated[str, typer.Option(help="A name for it.")] = "",
    workspace: Annotated[bool, typer.Option("--workspace", help="For all runs of the workspace; needs an admin.")] = False,
    base_url: Annotated[str | None, typer.Option(help="Refuse the key if the provider has another address.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Store a key, read from standard input or a prompt: never from the command line, where others could see it."""
    secret = (typer.prompt("Key", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not secret:
        raise CliError("No key was given; type it at the prompt, or pipe it in: benchyard keys set openai < key.txt")
    holder = "workspace" if workspace else "user"
    with command(as_json) as cmd:
        body = given(provider=provider, key=secret, name=name, holder=holder, base_url=base_url or None)
        stored = cmd.client.post("/api/keys", body)
        cmd.out.result(stored, f"Stored the key for {clean(stored['provider'])} that ends in {clean(stored['hint'])}.")


@keys_app.command("remove")
def remove_key(key_id: Annotated[int, typer.Argument(help="Its id.")], as_json: JsonFlag = False) -> None:
    """Remove a key."""
    with command(as_json) as cmd:
        cmd.client.delete(f"/api/keys/{key_id}")
        cmd.out.result({"removed": key_id}, f"Removed key {key_id}.")


@keys_app.command("rotate")
def rotate_keys(as_json: JsonFlag = False) -> None:
    """Encrypt all stored secrets again with the first master key; afterwards the older master keys can be removed."""
    with command(as_json) as cmd:
        report = cmd.client.post("/api/keys/rotate")
        if report["unreadable"]:
            cmd.out.warn(f"{report['unreadable']} cannot be decrypted with the configured master keys; the log says which.")
        cmd.out.result(report, f"Encrypted {report['sealed_again']} again.")


WhoseArgument = Annotated[str, typer.Argument(help="`workspace`, `everyone` (each user), or a user's id.")]


@limits_app.callback(invoke_without_command=True)
def show_limits(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Show limits and their current usage."""
    if context.invoked_subcommand is not None:
        return
    with command(as_json) as cmd:
        limits = cmd.client.get("/api/limits")
        cmd.out.result(limits, lambda: _limits_and_use(limits))


@limits_app.command("set")
def set_limit(
    whose: WhoseArgument,
    runs: Annotated[int | None, typer.Option(help="Runs at once; more wait.")] = None,
    spend: Annotated[float | None, typer.Option(help="US dollars a day (UTC).")] = None,
    rate: Annotated[float | None, typer.Option(help="Requests a second.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Set all three limits; omitting an option means no limit."""
    with command(as_json) as cmd:
        body = given(runs_at_once=runs, spend_per_day_usd=spend, requests_per_second=rate)
        limit = cmd.client.put(f"/api/limits/{quote(whose)}", body)
        cmd.out.result(limit, lambda: records_table([limit], LIMIT_COLUMNS))


@limits_app.command("remove")
def remove_limit(whose: WhoseArgument, as_json: JsonFlag = False) -> None:
    """Remove a limit."""
    with command(as_json) as cmd:
        cmd.client.delete(f"/api/limits/{quote(whose)}")
        cmd.out.result({"removed": whose}, f"Removed the limit for {clean(whose)}.")


def _limits_and_use(limits: Json) -> Group:
    used, own_use = limits["workspace"], limits["mine"]
    sentence = f"The workspace has {used['runs_now']} runs now and spent {money(used['spent_today_usd'])} today."
    if own_use:
        sentence += f" You: {own_use['runs_now']} runs, {money(own_use['spent_today_usd'])}."
    limits_view = records_table(limits["items"], LIMIT_COLUMNS) if limits["items"] else Text("There are no limits.")
    return Group(limits_view, "", Text(sentence))


def _or_no_limit(value: float | None, form: Callable[[float], object] = str) -> object:
    return "no limit" if value is None else form(value)


@audit_app.callback(invoke_without_command=True)
def audit(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Maximum number of entries.")] = 50,
    who: Annotated[str | None, typer.Option(help="Only of people or tokens whose name contains this.")] = None,
    what: Annotated[str | None, typer.Option(help="Only actions that contain this, such as DELETE.")] = None,
    object_id: Annotated[str | None, typer.Option("--object", help="Only changes of this object.")] = None,
    refused: Annotated[bool, typer.Option("--refused", help="Only requests that were refused or failed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Who changed what, newest first (the default); prune."""
    if context.invoked_subcommand is not None:
        return
    with command(as_json) as cmd:
        entries = cmd.client.pages(
            "/api/audit", limit=limit, actor=who, action=what, object_id=object_id, refused=refused or None
        )
        cmd.out.items(entries, AUDIT_COLUMNS, empty="No entries.")


@audit_app.command("prune")
def prune(
    days: Annotated[int, typer.Option(min=30, max=36500, help="Keep the entries of this many days.")] = 365,
    as_json: JsonFlag = False,
) -> None:
    """Delete old entries; the log keeps an entry about the deletion."""
    before = now() - timedelta(days=days, minutes=1)
    with command(as_json) as cmd:
        deleted = int(cmd.client.post("/api/audit/prune", {"before": before.isoformat()})["deleted"])
        cmd.out.result({"deleted": deleted}, f"Deleted {deleted} entries from before {before:%Y-%m-%d}.")
