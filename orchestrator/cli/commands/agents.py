"""Commands about other machines: be one, list them, send one away."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.cli.api.connection import read_settings
from orchestrator.cli.context import command, now
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.view.output import JsonFlag, table
from orchestrator.cli.view.text import ago, clean

agents_app = typer.Typer(help="Other machines that run containers: list, dismiss.", no_args_is_help=False)


def agent(
    instance_type: Annotated[list[str], typer.Option(help="An instance type to offer; repeat for more.")],
    url: Annotated[str, typer.Option(help="The orchestrator's address.", envvar="BENCHYARD_URL")],
    token: Annotated[str, typer.Option(help="A token of scope agent.", envvar="BENCHYARD_TOKEN")],
    provider: Annotated[str, typer.Option(help="What runs ask for with `provider`.")] = "agent",
    name: Annotated[str, typer.Option(help="How this machine is shown.")] = "",
    max_at_once: Annotated[
        int, typer.Option("--max", min=0, help="Containers at once; 0: as many as CPUs and memory allow.")
    ] = 0,
    data: Annotated[Path, typer.Option(help="Where the agent keeps its identity.")] = Path("agent-data"),
    debug: Annotated[bool, typer.Option("--debug", help="Keep failed containers.")] = False,
) -> None:
    """Run containers for an orchestrator elsewhere, on this machine's engine. Only its address must be reachable."""
    from orchestrator.agent.loop import AgentOptions
    from orchestrator.agent.main import run_agent
    from orchestrator.installation.identity import DataDirectoryBusy, DataLock, own_name
    from orchestrator.system.log import configure

    if not url.startswith(("http://", "https://")):
        raise BadUsage(f"--url is {url!r}; it must begin with http:// or https://.")
    given = read_settings()
    configure(given.log_level)
    try:
        lock = DataLock(data.absolute())
    except DataDirectoryBusy as busy:
        raise CliError(f"{busy}; an agent's directory is set with --data.") from busy
    agent_id = own_name(data.absolute())
    network = given.runner_network if "BENCHYARD_RUNNER_NETWORK" in os.environ else f"benchyard-agent-{agent_id}"
    port = given.runner_port if given.runner_port is not None else 8401
    settings = given.model_copy(update={"data": data, "runner_network": network, "runner_port": port})
    options = AgentOptions(
        agent_id=agent_id,
        name=name or socket.gethostname(),
        provider=provider,
        instance_types=tuple(instance_type),
        image=settings.runner_image,
        max_at_once=max_at_once or None,
        debug=debug,
    )
    try:
        trouble = asyncio.run(run_agent(settings, url.rstrip("/"), token, options))
    finally:
        lock.release()
    if trouble is not None:
        raise CliError(trouble)


@agents_app.callback(invoke_without_command=True)
def agents(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Other machines that run containers: list (the default), dismiss."""
    if context.invoked_subcommand is None:
        list_agents(as_json=as_json)


@agents_app.command("list")
def list_agents(as_json: JsonFlag = False) -> None:
    """List agents and what they run."""
    with command(as_json) as cmd:
        found = cmd.client.agents()
        rows = [
            (
                each["id"],
                each["name"],
                each["provider"],
                ", ".join(each["instance_types"]),
                f"{len(each['running'])} of {each['max_at_once']}",
                "leaving" if each["leaving"] else "connected" if each["connected"] else "silent",
                ago(each["seen_at"], now()),
            )
            for each in found
        ]
        columns = ("Id", "Name", "Provider", "Types", "Runs", "State", "Seen")
        none = Text(
            "No agent. Start one on another machine: benchyard agent --url ADDRESS --token TOKEN --instance-type TYPE"
        )
        cmd.out.result({"items": found}, lambda: table(columns, rows) if rows else none)


@agents_app.command("dismiss")
def dismiss(agent_id: Annotated[str, typer.Argument(help="Its id.")], as_json: JsonFlag = False) -> None:
    """Tell an agent to leave when its containers have ended."""
    with command(as_json) as cmd:
        cmd.client.dismiss_agent(agent_id)
        said = Text(f"Agent {clean(agent_id)} leaves when its containers have ended.")
        cmd.out.result({"dismissed": agent_id}, lambda: said)
