"""Commands about webhooks: list, add, change, test, remove."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from orchestrator.cli.context import command, now
from orchestrator.cli.errors import CliError
from orchestrator.cli.view.output import JsonFlag, table
from orchestrator.cli.view.text import ago, clean

webhooks_app = typer.Typer(help="Addresses that alerts are posted to: list, add, change, test, remove.")

EveryFailure = Annotated[
    bool | None,
    typer.Option("--every-failure/--scheduled-failures", help="`run.failed` for every run, or for scheduled runs only."),
]
WebhookId = Annotated[int, typer.Argument(help="Its id, as `benchyard webhooks` lists it.")]


@webhooks_app.callback(invoke_without_command=True)
def webhooks(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Webhooks: list (the default), add, change, test, remove."""
    if context.invoked_subcommand is None:
        list_webhooks(as_json=as_json)


@webhooks_app.command("list")
def list_webhooks(as_json: JsonFlag = False) -> None:
    """List webhooks and what became of their messages."""
    with command(as_json) as cmd:
        found = cmd.client.webhooks()
        rows = [
            (
                each["id"],
                clean(each["url"]),
                "all" if each["model_id"] is None else each["model_id"],
                "every run" if each["every_failed_run"] else "scheduled runs",
                ", ".join(f"{count} {state}" for state, count in sorted(each["deliveries"].items())) or "none yet",
                ago(each["created_at"], now()),
            )
            for each in found
        ]
        columns = ("Id", "Address", "Model", "Failures of", "Messages", "Created")
        none = Text("No webhooks. Add one: benchyard webhooks add URL")
        cmd.out.result({"items": found}, lambda: table(columns, rows, right=("Id",)) if rows else none)


@webhooks_app.command("add")
def add_webhook(
    url: Annotated[str, typer.Argument(help="Where alerts are posted.")],
    model: Annotated[str | None, typer.Option(help="Only alerts of this model.")] = None,
    every_failure: EveryFailure = None,
    as_json: JsonFlag = False,
) -> None:
    """Add an address and print the secret that signs its messages: the only time it is shown."""
    body: dict[str, Any] = {"url": url, "every_failed_run": bool(every_failure)}
    with command(as_json) as cmd:
        made = cmd.client.add_webhook(body | ({"model_id": model} if model is not None else {}))
        cmd.out.result(made, lambda: Text(clean(made["secret"])))
        cmd.out.note(f"Webhook {made['id']} was added. Its secret is shown only now.")


@webhooks_app.command("change")
def change_webhook(webhook_id: WebhookId, every_failure: EveryFailure = None, as_json: JsonFlag = False) -> None:
    """Choose which failed runs an address is told of."""
    if every_failure is None:
        raise CliError("Nothing to change: give --every-failure or --scheduled-failures.")
    with command(as_json) as cmd:
        changed = cmd.client.change_webhook(webhook_id, {"every_failed_run": every_failure})
        which = "every run that fails" if every_failure else "failures of scheduled runs only"
        cmd.out.result(changed, lambda: Text(f"Webhook {webhook_id} is told of {which}."))


@webhooks_app.command("test")
def try_webhook(webhook_id: WebhookId, as_json: JsonFlag = False) -> None:
    """Send a test message now, and say what the address answered."""
    with command(as_json) as cmd:
        tried = cmd.client.try_webhook(webhook_id)
        if not tried["delivered"]:
            raise CliError(f"The test message was not accepted: {clean(tried['error'])}.")
        cmd.out.result(tried, lambda: Text(f"The address answered {tried['status']}."))


@webhooks_app.command("remove")
def remove_webhook(webhook_id: WebhookId, as_json: JsonFlag = False) -> None:
    """Remove an address; messages on their way to it are dropped."""
    with command(as_json) as cmd:
        cmd.client.remove_webhook(webhook_id)
        cmd.out.result({"removed": webhook_id}, lambda: Text(f"Removed webhook {webhook_id}."))
