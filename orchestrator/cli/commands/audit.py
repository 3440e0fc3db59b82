"""Commands about the audit log: look at it, let go of what is old."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.cli.api.accounts import AccountClient
from orchestrator.cli.context import command, now
from orchestrator.cli.view.output import JsonFlag, table
from orchestrator.cli.view.text import ago

audit_app = typer.Typer(help="The audit log: who changed what, when, from where.", no_args_is_help=False)

COLUMNS = ("When", "Who", "What", "Object", "Outcome", "From", "Request")


@audit_app.callback(invoke_without_command=True)
def audit(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many.")] = 50,
    who: Annotated[str | None, typer.Option(help="Only of those whose name has this in it.")] = None,
    what: Annotated[str | None, typer.Option(help="Only actions with this in them, such as DELETE.")] = None,
    object_id: Annotated[str | None, typer.Option("--object", help="Only what was done to this.")] = None,
    refused: Annotated[bool, typer.Option("--refused", help="Only what was refused or failed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Who changed what, newest first (the default); prune."""
    if context.invoked_subcommand is not None:
        return
    with command(as_json) as cmd, AccountClient(cmd.connection) as client:
        found = client.audit(limit=limit, actor=who, action=what, object_id=object_id, refused=refused or None)
        rows = [
            (
                ago(each["at"], now()),
                each["actor"] or each["actor_kind"],
                each["action"],
                each["object_id"],
                each["status"] or "done",
                each["address"],
                each["request_id"],
            )
            for each in found
        ]
        cmd.out.result({"items": found}, lambda: table(COLUMNS, rows) if rows else Text("No entries."))


@audit_app.command("prune")
def prune(
    days: Annotated[int, typer.Option(min=30, max=36500, help="Keep those of so many days.")] = 365,
    as_json: JsonFlag = False,
) -> None:
    """Delete old entries; that it was done stays in the log."""
    before = datetime.now(UTC) - timedelta(days=days, minutes=1)
    with command(as_json) as cmd, AccountClient(cmd.connection) as client:
        deleted = client.prune_audit(before.isoformat())
        cmd.out.result({"deleted": deleted}, lambda: Text(f"Deleted {deleted} entries from before {before:%Y-%m-%d}."))
