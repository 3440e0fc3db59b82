"""Commands about webhooks: list, add, change, test, remove."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli.api.client import given
from orchestrator.cli.context import command, command_group, now
from orchestrator.cli.errors import CliError
from orchestrator.cli.view.output import Columns, JsonFlag
from orchestrator.cli.view.text import ago, clean

PATH = "/api/alerts/webhooks"
COLUMNS: Columns = {
    "Id": "id",
    "Address": "url",
    "Form": "format",
    "Model": lambda webhook: "all" if webhook["model_id"] is None else webhook["model_id"],
    "Failures of": lambda webhook: "every run" if webhook["every_failed_run"] else "scheduled runs",
    "Messages": lambda webhook: (
        ", ".join(f"{count} {state}" for state, count in sorted(webhook["deliveries"].items())) or "none yet"
    ),
    "Created": lambda webhook: ago(webhook["created_at"], now()),
}

webhooks_app = command_group("Addresses that alerts are posted to: list (the default), add, change, test, remove.")

EveryFailure = Annotated[
    bool | None,
    typer.Option("--every-failure/--scheduled-failures", help="`run.failed` for every run, or for scheduled runs only."),
]
WebhookId = Annotated[int, typer.Argument(help="Its id, as `benchyard webhooks` lists it.")]


@webhooks_app.command("list")
def list_webhooks(as_json: JsonFlag = False) -> None:
    """List webhooks and the state of their messages."""
    with command(as_json) as cmd:
        empty = "No webhooks. Add one: benchyard webhooks add URL"
        cmd.out.items(cmd.client.items(PATH), COLUMNS, right=("Id",), empty=empty)


@webhooks_app.command("add")
def add_webhook(
    url: Annotated[str, typer.Argument(help="Where alerts are posted.")],
    model: Annotated[str | None, typer.Option(help="Only alerts of this model.")] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="FORMAT", help="Of messages: standard (signed, the default), slack, teams, discord, email."
        ),
    ] = None,
    every_failure: EveryFailure = None,
    as_json: JsonFlag = False,
) -> None:
    """Add an address. Prints the secret that signs its messages: the only time it is shown."""
    with command(as_json) as cmd:
        body = given(url=url, every_failed_run=bool(every_failure), model_id=model, format=form)
        webhook = cmd.client.post(PATH, body)
        added = f"Webhook {webhook['id']} was added. Send a test message: benchyard webhooks test {webhook['id']}"
        if webhook["format"] != "standard":
            cmd.out.result(webhook, added)
            return
        cmd.out.result(webhook, clean(webhook["secret"]))
        cmd.out.note("The secret is shown only now.")
        cmd.out.note(added)


@webhooks_app.command("change")
def change_webhook(webhook_id: WebhookId, every_failure: EveryFailure = None, as_json: JsonFlag = False) -> None:
    """Choose which failed runs are reported to an address."""
    if every_failure is None:
        raise CliError("Nothing to change: give --every-failure or --scheduled-failures.")
    with command(as_json) as cmd:
        webhook = cmd.client.patch(f"{PATH}/{webhook_id}", {"every_failed_run": every_failure})
        which = "every run that fails" if every_failure else "failures of scheduled runs only"
        cmd.out.result(webhook, f"Webhook {webhook_id} reports {which}.")


@webhooks_app.command("test")
def try_webhook(webhook_id: WebhookId, as_json: JsonFlag = False) -> None:
    """Send a test message now and show the response."""
    with command(as_json) as cmd:
        attempt = cmd.client.post(f"{PATH}/{webhook_id}/test")
        if not attempt["delivered"]:
            raise CliError(f"The test message was not accepted: {clean(attempt['error'])}.")
        cmd.out.result(attempt, f"The address answered {attempt['status']}.")


@webhooks_app.command("remove")
def remove_webhook(webhook_id: WebhookId, as_json: JsonFlag = False) -> None:
    """Remove an address; its undelivered messages are dropped."""
    with command(as_json) as cmd:
        cmd.client.delete(f"{PATH}/{webhook_id}")
        cmd.out.result({"removed": webhook_id}, f"Removed webhook {webhook_id}.")
