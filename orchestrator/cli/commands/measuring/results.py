"""Commands that show one run: show, logs."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli.api.client import Client, Json, run_path
from orchestrator.cli.commands.measuring.runs import RunArgument
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import INTERRUPTED
from orchestrator.cli.view.live import RunView
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.runs import run_detail
from orchestrator.cli.view.text import clean


def show(run_id: RunArgument, as_json: JsonFlag = False) -> None:
    """Show a run: result, outcomes, attempts, and why it ended."""
    with command(as_json) as cmd:
        run = cmd.client.find_run(run_id)
        cmd.out.result(run, lambda: run_detail(run, now()))


def logs(
    run_id: RunArgument,
    follow_on: Annotated[bool, typer.Option("--follow", "-f", help="Continue until the run is over.")] = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Container output of this attempt; default: the newest.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the runner's log, and the end of its container's output."""
    with command(as_json) as cmd:
        run = cmd.client.find_run(run_id)
        if follow_on:
            _follow_logs(cmd, run)
        log = _read_logs(cmd.client, str(run["id"]), attempt)
        if as_json:
            cmd.out.json({"container_log": log["container_log"]} if follow_on else log)
            return
        if not follow_on:
            for line in log["lines"]:
                _log_line(cmd, line["at"], line["level"], line["message"])
        if log["container_log"]:
            cmd.out.note("--- container output")
            cmd.out.say(clean(log["container_log"], lines=True).rstrip("\n"))


def _read_logs(client: Client, run_id: str, attempt: int | None) -> Json:
    """All log lines, and the end of the container's output."""
    lines: list[Json] = []
    after = "0"
    while True:
        page = client.get(f"{run_path(run_id)}/logs", after=after, limit=500, attempt=attempt)
        lines += page["lines"]
        if not page.get("next"):
            return {"lines": lines, "container_log": page["container_log"]}
        after = page["next"]


def _follow_logs(cmd: Command, run: Json) -> None:
    view = RunView.of(run)
    try:
        for event in cmd.client.follow(run_path(view.run_id)):
            if cmd.out.as_json:
                if event.type in ("log", "stage", "transition"):
                    cmd.out.json(event.data)
            elif event.type == "log":
                _log_line(cmd, event.data["at"], event.data.get("level", "info"), event.data.get("message", ""))
            elif event.type == "transition":
                view = view.after(event)
                cmd.out.note(f"--- {view.word}{f': {view.note}' if view.note else ''}")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _log_line(cmd: Command, at: object, level: object, message: object) -> None:
    style = {"error": "red", "warning": "yellow"}.get(str(level), "")
    cmd.out.say(f"{clean(at)[:23]} {clean(level):7} {clean(message, lines=True)}", style)
