"""Commands about models: list, add, set, remove, sync."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from orchestrator.cli.context import command
from orchestrator.cli.view.output import JsonFlag, table
from orchestrator.cli.view.text import clean

InputPrice = Annotated[float | None, typer.Option(min=0, help="US dollars per million input tokens.")]
OutputPrice = Annotated[float | None, typer.Option(min=0, help="US dollars per million output tokens.")]
CachedPrice = Annotated[float | None, typer.Option(min=0, help="The same for input read from the provider's cache.")]
CacheWritePrice = Annotated[float | None, typer.Option(min=0, help="The same for input written to the provider's cache.")]
MaxTokens = Annotated[int | None, typer.Option(help="Longest answer, in tokens.")]
Temperature = Annotated[float | None, typer.Option(help="Sampling temperature.")]
TopP = Annotated[float | None, typer.Option(help="Nucleus sampling.")]
ThinkingBudget = Annotated[int | None, typer.Option(help="Tokens for thinking (Anthropic).")]
Effort = Annotated[str | None, typer.Option(help="Reasoning effort: low, medium, high, or what the provider knows.")]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="Longest time for one call.")]
Cutoff = Annotated[str | None, typer.Option(metavar="DATE", help="Training cut-off, 2025-03-31.")]

CLEARED = frozenset({"input_price", "output_price", "cached_input_price", "cache_write_price", "training_cutoff"})
_FIELD_OF = {"cached-price": "cached_input_price", "cutoff": "training_cutoff", "timeout": "request_timeout_s"}

models_app = typer.Typer(help="Models that can be measured: list, add, set, remove, sync.", no_args_is_help=False)


@models_app.callback(invoke_without_command=True)
def models(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Models that can be measured: list (the default), add, set, remove, sync."""
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
    input_price: InputPrice = None,
    output_price: OutputPrice = None,
    cached_price: CachedPrice = None,
    cache_write_price: CacheWritePrice = None,
    cutoff: Cutoff = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    thinking_budget: ThinkingBudget = None,
    effort: Effort = None,
    timeout: Timeout = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a model."""
    params = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "thinking_budget": thinking_budget,
        "effort": effort,
        "request_timeout_s": timeout,
    }
    body: dict[str, Any] = {
        "slug": slug,
        "provider": provider,
        "name": name or slug,
        "display_name": title,
        "protocol": protocol,
        "input_price": input_price,
        "output_price": output_price,
        "cached_input_price": cached_price,
        "cache_write_price": cache_write_price,
        "training_cutoff": cutoff,
        "params": {key: value for key, value in params.items() if value is not None},
    }
    with command(as_json) as cmd:
        made = cmd.client.add_model({key: value for key, value in body.items() if value is not None})
        cmd.out.result(
            made, lambda: Text(f"Added {clean(made['slug'])}. Run it: benchyard run -m {clean(made['slug'])} -n 10")
        )


@models_app.command("set")
def set_model(
    model: Annotated[str, typer.Argument(help="Slug or id.")],
    name: Annotated[str | None, typer.Option(help="Its name at the provider.")] = None,
    protocol: Annotated[str | None, typer.Option(help="anthropic, openai_chat or openai_responses.")] = None,
    title: Annotated[str | None, typer.Option(help="A description for people.")] = None,
    input_price: InputPrice = None,
    output_price: OutputPrice = None,
    cached_price: CachedPrice = None,
    cache_write_price: CacheWritePrice = None,
    cutoff: Cutoff = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    thinking_budget: ThinkingBudget = None,
    effort: Effort = None,
    timeout: Timeout = None,
    clear: Annotated[
        list[str] | None, typer.Option(metavar="OPTION", help="Take a value away, such as temperature; may be repeated.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Change prices or settings of a model; what is not named stays. Prices are dated today."""
    fields: dict[str, Any] = {
        "name": name,
        "protocol": protocol,
        "display_name": title,
        "input_price": input_price,
        "output_price": output_price,
        "cached_input_price": cached_price,
        "cache_write_price": cache_write_price,
        "training_cutoff": cutoff,
    }
    params = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "thinking_budget": thinking_budget,
        "effort": effort,
        "request_timeout_s": timeout,
    }
    gone = {_FIELD_OF.get(each.replace("_", "-"), each.replace("-", "_")) for each in clear or ()}
    unknown = gone - set(params) - CLEARED
    if unknown:
        raise typer.BadParameter(f"{', '.join(sorted(unknown))} cannot be taken away", param_hint="--clear")
    body = {key: value for key, value in fields.items() if value is not None} | dict.fromkeys(gone & CLEARED)
    changed = {key: value for key, value in params.items() if value is not None}
    if not body and not changed and not gone:
        raise typer.BadParameter("name something to change, such as --input-price 3 --output-price 15")
    with command(as_json) as cmd:
        if changed or gone & set(params):
            kept = {key: value for key, value in cmd.client.model(model)["params"].items() if key not in gone}
            body["params"] = kept | changed
        made = cmd.client.change_model(model, body)
        cmd.out.result(made, lambda: Text(f"{clean(made['slug'])}: {_prices(made)} dollars per million tokens in/out."))


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


def _prices(model: dict[str, Any]) -> str:
    pair = (model["input_price"], model["output_price"])
    if None in pair:
        return "unknown"
    entered = model["prices_entered_at"]
    return f"{pair[0]:g} / {pair[1]:g}" + (f", entered {entered[:10]}" if entered else "")
