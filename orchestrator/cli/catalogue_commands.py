"""Commands about what there is: models, benchmarks, fleet."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.context import command, now
from orchestrator.cli.output import JsonFlag, facts, table
from orchestrator.cli.text import ago, clean, size

models_app = typer.Typer(help="Models that can be measured: list, add, remove, sync.", no_args_is_help=False)


@models_app.callback(invoke_without_command=True)
def models(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Models that can be measured: list (the default), add, remove, sync."""
    if context.invoked_subcommand is None:
        list_models(as_json=as_json)


@models_app.command("list")
def list_models(
    archived: Annotated[bool, typer.Option("--archived", help="Also those that were removed but have results.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List models."""
    with command(as_json) as cmd:
        found = cmd.client.models(archived=archived)
        rows = [
            (each["slug"], each["provider"], each["name"], each["protocol"], _prices(each), each["display_name"])
            for each in found
        ]
        columns = ("Model", "Provider", "Name there", "Protocol", "$ per M tokens in/out", "Description")
        cmd.out.result({"items": found}, lambda: table(columns, rows) if rows else Text("No models."))


@models_app.command("add")
def add_model(
    slug: Annotated[str, typer.Argument(help="What it is called here: lower case letters, digits, . _ : / -")],
    provider: Annotated[str, typer.Option(help="anthropic, openai, or one of your own.")],
    name: Annotated[str | None, typer.Option(help="Its name at the provider. Default: the slug.")] = None,
    protocol: Annotated[str | None, typer.Option(help="anthropic, openai_chat or openai_responses.")] = None,
    title: Annotated[str, typer.Option(help="A description for people.")] = "",
    input_price: Annotated[float | None, typer.Option(help="US dollars per million input tokens.")] = None,
    output_price: Annotated[float | None, typer.Option(help="US dollars per million output tokens.")] = None,
    cutoff: Annotated[str | None, typer.Option(metavar="DATE", help="Training cut-off, 2025-03-31.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Longest answer, in tokens.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a model."""
    params = {"max_tokens": max_tokens, "temperature": temperature}
    body: dict[str, Any] = {
        "slug": slug,
        "provider": provider,
        "name": name or slug,
        "display_name": title,
        "protocol": protocol,
        "input_price": input_price,
        "output_price": output_price,
        "training_cutoff": cutoff,
        "params": {key: value for key, value in params.items() if value is not None},
    }
    with command(as_json) as cmd:
        made = cmd.client.add_model({key: value for key, value in body.items() if value is not None})
        cmd.out.result(
            made, lambda: Text(f"Added {clean(made['slug'])}. Run it: benchyard run -m {clean(made['slug'])} -n 10")
        )


@models_app.command("remove")
def remove_model(
    model: Annotated[str, typer.Argument(help="Slug or id.")],
    as_json: JsonFlag = False,
) -> None:
    """Remove a model; its results stay."""
    with command(as_json) as cmd:
        cmd.client.remove_model(model)
        cmd.out.result({"removed": model}, lambda: Text(f"Removed {clean(model)}."))


@models_app.command("sync")
def sync_models(as_json: JsonFlag = False) -> None:
    """Ask the providers which models they have: add new ones, mark those that disappeared."""
    with command(as_json) as cmd:
        done = cmd.client.sync_models()
        cmd.out.result(done, lambda: _synced(done))
        for provider, why in done["failed"].items():
            cmd.out.warn(f"{clean(provider)}: {clean(why)}")


def _synced(done: dict[str, Any]) -> RenderableType:
    if not done["providers"]:
        return Text("No provider is configured: set ANTHROPIC_API_KEY, OPENAI_API_KEY or one of your own.")
    words = {"added": "added", "returned": "there again", "missing": "not there any more"}
    rows = [(slug, word) for name, word in words.items() for slug in done[name]]
    return table(("Model", "What became of it"), rows) if rows else Text("The catalogue is up to date.")


def benchmarks(as_json: JsonFlag = False) -> None:
    """List the benchmarks that can be run here."""
    with command(as_json) as cmd:
        found = cmd.client.benchmarks()
        rows = [
            (
                f"{each['name']} (default)" if each["default"] else each["name"],
                each["problems"],
                ", ".join(f"{count} {name}" for name, count in each["difficulties"].items()),
                _window(each),
                each["licence"],
                each["description"],
            )
            for each in found
        ]
        columns = ("Benchmark", "Problems", "Difficulties", "Dates", "Licence", "Description")
        cmd.out.result({"items": found}, lambda: table(columns, rows, right=("Problems",)))


def fleet(as_json: JsonFlag = False) -> None:
    """Show the engine, what it can hold, what runs now, and why something waits."""
    with command(as_json) as cmd:
        state = cmd.client.fleet()
        cmd.out.result(state, lambda: _fleet(state))


def _fleet(state: dict[str, Any]) -> RenderableType:
    engine, capacity = state["engine"], state["capacity"]
    reach = engine["version"] if engine["reachable"] else f"does not answer: {engine['error'] or 'not yet'}"
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
        table(
            ("Instance type", "vCPU", "Memory", "Disk", "Fits"),
            [
                (
                    f"{each['name']} (default)" if each["default"] else each["name"],
                    f"{each['vcpu']:g}",
                    size(each["memory_bytes"]),
                    f"{each['disk_bytes'] / 1e9:g} GB",
                    "yes" if each["fits"] else each["why_not"],
                )
                for each in state["instance_types"]
            ],
            right=("vCPU", "Memory", "Disk"),
        ),
    ]
    if state["containers"]:
        rows = [
            (each["name"], each["state"], _number(each["cpu_s"]), f"{size(each['memory_bytes'])}")
            for each in state["containers"]
        ]
        parts += ["", table(("Container", "State", "CPU seconds", "Memory"), rows, right=("CPU seconds", "Memory"))]
    if state["waiting"]:
        rows = [(each["run_id"], each["instance_type"], ago(each["since"], now()), each["why"]) for each in state["waiting"]]
        parts += ["", table(("Waiting run", "Instance type", "Since", "Why"), rows)]
    return Group(*parts)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _prices(model: dict[str, Any]) -> str:
    pair = (model["input_price"], model["output_price"])
    return "unknown" if None in pair else f"{pair[0]:g} / {pair[1]:g}"


def _window(benchmark: dict[str, Any]) -> str:
    first, last = benchmark["first_date"], benchmark["last_date"]
    return f"{first} to {last}" if first and last else "–"
