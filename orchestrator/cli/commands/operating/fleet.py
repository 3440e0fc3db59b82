"""Commands about machines: the fleet, and agents on other machines."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Group, RenderableType

from orchestrator.cli.api.client import Json
from orchestrator.cli.api.connection import read_settings
from orchestrator.cli.context import command, command_group, now
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.view.output import Columns, JsonFlag, facts, records_table
from orchestrator.cli.view.text import ago, clean, size

AGENT_COLUMNS: Columns = {
    "Id": "id",
    "Name": "name",
    "Provider": "provider",
    "Types": lambda agent: ", ".join(agent["instance_types"]),
    "Runs": lambda agent: f"{len(agent['running'])} of {agent['max_at_once']}",
    "State": lambda agent: "leaving" if agent["leaving"] else "connected" if agent["connected"] else "silent",
    "Seen": lambda agent: ago(agent["seen_at"], now()),
}
TYPE_COLUMNS: Columns = {
    "Instance type": lambda kind: f"{kind['name']} (default)" if kind["default"] else kind["name"],
    "vCPU": lambda kind: f"{kind['vcpu']:g}",
    "Memory": lambda kind: size(kind["memory_bytes"]),
    "Disk": lambda kind: f"{kind['disk_bytes'] / 1e9:g} GB",
    "In use": "in_use",
    "Ready": "ready",
    "At most": lambda kind: "–" if kind["max_instances"] is None else kind["max_instances"],
    "Fits": lambda kind: "yes" if kind["fits"] else kind["why_not"],
}
CONTAINER_COLUMNS: Columns = {
    "Container": "name",
    "State": "state",
    "Machine": lambda container: container["machine"] or "–",
    "Detail": lambda container: container["detail"] or "",
    "CPU seconds": lambda container: _number(container["cpu_s"]),
    "Memory": lambda container: size(container["memory_bytes"]),
}
MACHINE_COLUMNS: Columns = {
    "Machine": "name",
    "State": lambda machine: "ready" if machine["ready"] and not machine["detail"] else machine["detail"] or "silent",
    "vCPU": lambda machine: f"{machine['vcpu']:g}",
    "Memory": lambda machine: size(machine["memory_bytes"]),
    "Containers": "containers",
}
WAITING_COLUMNS: Columns = {
    "Waiting run": "run_id",
    "Instance type": "instance_type",
    "Since": lambda run: ago(run["since"], now()),
    "Why": "why",
}

agents_app = command_group("Other machines that run containers: list (the default), dismiss.")


def fleet(as_json: JsonFlag = False) -> None:
    """Show the engine, its capacity, what runs now, and why runs wait."""
    with command(as_json) as cmd:
        state = cmd.client.get("/api/fleet")
        cmd.out.result(state, lambda: _fleet(state))


def _fleet(state: Json) -> RenderableType:
    engine, capacity = state["engine"], state["capacity"]
    reach = engine["version"] if engine["reachable"] else f"does not answer: {engine['error'] or 'not yet'}"
    numbers = ("vCPU", "Memory", "Disk", "In use", "Ready", "At most", "CPU seconds", "Containers")
    parts: list[RenderableType] = [
        facts(
            (
                ("Engine", f"{engine['name']} {reach}"),
                ("Isolation", engine["isolation"]),
                ("Instances", f"{capacity['used_instances']} of {capacity['max_instances']}"),
                ("vCPU", f"{capacity['used_vcpu']:g} of {_number(capacity['vcpu'])}"),
                ("Memory", f"{size(capacity['used_memory_bytes'])} of {size(capacity['memory_bytes'])}"),
                ("Attention", state["banner"]),
            )
        ),
        "",
        records_table(state["instance_types"], TYPE_COLUMNS, right=numbers),
    ]
    tables = (
        (state["machines"], MACHINE_COLUMNS),
        (state["containers"], CONTAINER_COLUMNS),
        (state["waiting"], WAITING_COLUMNS),
    )
    for rows, columns in tables:
        if rows:
            parts += ["", records_table(rows, columns, right=numbers)]
    return Group(*parts)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def agent(
    instance_type: Annotated[list[str], typer.Option(help="An instance type to offer; repeat for more.")],
    url: Annotated[str, typer.Option(help="The orchestrator's address.", envvar="BENCHYARD_URL")],
    token: Annotated[str, typer.Option(help="A token of scope agent.", envvar="BENCHYARD_TOKEN")],
    provider: Annotated[str, typer.Option(help="The name that runs select with `provider`.")] = "agent",
    name: Annotated[str, typer.Option(help="The name that this machine is listed under.")] = "",
    max_at_once: Annotated[
        int, typer.Option("--max", min=0, help="Containers at once; 0: as many as CPUs and memory allow.")
    ] = 0,
    data: Annotated[Path, typer.Option(help="The directory that holds the agent's identity.")] = Path("agent-data"),
    debug: Annotated[bool, typer.Option("--debug", help="Keep failed containers.")] = False,
) -> None:
    """Run containers on this machine's engine for an orchestrator elsewhere. Only the orchestrator's address must be
    reachable.
    """
    from orchestrator.agent.loop import AgentOptions
    from orchestrator.agent.main import run_agent
    from orchestrator.installation.identity import DataDirectoryBusy, DataLock, own_name
    from orchestrator.system.log import configure

    if not url.startswith(("http://", "https://")):
        raise BadUsage(f"--url is {url!r}; it must begin with http:// or https://.")
    settings = read_settings()
    configure(settings.log_level)
    try:
        lock = DataLock(data.absolute())
    except DataDirectoryBusy as busy:
        raise CliError(f"{busy}; an agent's directory is set with --data.") from busy
    agent_id = own_name(data.absolute())
    network = settings.runner_network if "BENCHYARD_RUNNER_NETWORK" in os.environ else f"benchyard-agent-{agent_id}"
    port = settings.runner_port if settings.runner_port is not None else 8401
    settings = settings.model_copy(update={"data": data, "runner_network": network, "runner_port": port})
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
        problem = asyncio.run(run_agent(settings, url.rstrip("/"), token, options))
    finally:
        lock.release()
    if problem is not None:
        raise CliError(problem)


@agents_app.command("list")
def list_agents(as_json: JsonFlag = False) -> None:
    """List agents and their runs."""
    with command(as_json) as cmd:
        empty = "No agent. Start one on another machine: benchyard agent --url ADDRESS --token TOKEN --instance-type TYPE"
        cmd.out.items(cmd.client.items("/api/agents"), AGENT_COLUMNS, empty=empty)


@agents_app.command("dismiss")
def dismiss(agent_id: Annotated[str, typer.Argument(help="Its id.")], as_json: JsonFlag = False) -> None:
    """Tell an agent to exit when its containers have ended."""
    with command(as_json) as cmd:
        cmd.client.delete(f"/api/agents/{quote(agent_id, safe='')}")
        cmd.out.result({"dismissed": agent_id}, f"Agent {clean(agent_id)} leaves when its containers have ended.")
