"""Commands about models: list, add, set, remove, sync."""

from __future__ import annotations

import json
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import RenderableType
from rich.text import Text

from orchestrator.cli.api.client import Json
from orchestrator.cli.context import command, command_group
from orchestrator.cli.view.output import Columns, JsonFlag, table
from orchestrator.cli.view.text import clean


def _json_object(text: str) -> Json:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter('must be a JSON object, such as {"min_p": 0.1}')
    return value


ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Slug or id.")]
Protocol = Annotated[str | None, typer.Option(help="anthropic, openai_chat or openai_responses.")]
InputPrice = Annotated[float | None, typer.Option(min=0, help="US dollars per million input tokens.")]
OutputPrice = Annotated[float | None, typer.Option(min=0, help="US dollars per million output tokens.")]
CachedPrice = Annotated[float | None, typer.Option(min=0, help="The same for input read from the provider's cache.")]
CacheWritePrice = Annotated[float | None, typer.Option(min=0, help="The same for input written to the provider's cache.")]
ReasoningPrice = Annotated[float | None, typer.Option(min=0, help="The same for reasoning, if it is not the output price.")]
BatchInputPrice = Annotated[float | None, typer.Option(min=0, help="The same for input that is sent in a batch.")]
BatchOutputPrice = Annotated[float | None, typer.Option(min=0, help="The same for output of a batch.")]
ContextTokens = Annotated[int | None, typer.Option(min=1, help="The longest prompt and answer together, in tokens.")]
MaxTokens = Annotated[int | None, typer.Option(help="Longest answer, in tokens.")]
Temperature = Annotated[float | None, typer.Option(help="Sampling temperature.")]
TopP = Annotated[float | None, typer.Option(help="Nucleus sampling.")]
TopK = Annotated[int | None, typer.Option(help="Sample from this many tokens only.")]
Seed = Annotated[int | None, typer.Option(help="The same for every call; several samples of a problem may then be equal.")]
StopAt = Annotated[list[str] | None, typer.Option("--stop", metavar="TEXT", help="Ends an answer; may be repeated.")]
SystemPrompt = Annotated[str | None, typer.Option(help="Stands before the system prompt of a benchmark.")]
ExtraBody = Annotated[
    dict | None,  # type: ignore[type-arg]  # typer takes no other form with a parser
    typer.Option(metavar="JSON", parser=_json_object, help="More fields of requests: '{\"chat_template_kwargs\": {}}'."),
]
ThinkingBudget = Annotated[int | None, typer.Option(help="Tokens for thinking (Anthropic).")]
Effort = Annotated[str | None, typer.Option(help="Reasoning effort: low, medium, high, or another that the provider has.")]
Thinking = Annotated[bool | None, typer.Option("--thinking/--no-thinking", help="Think before the answer, or not.")]
TemplateArguments = Annotated[
    dict | None,  # type: ignore[type-arg]
    typer.Option(metavar="JSON", parser=_json_object, help="Arguments of the chat template (vLLM, SGLang, llama.cpp)."),
]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="Longest time for one call.")]
Cutoff = Annotated[str | None, typer.Option(metavar="DATE", help="Training cut-off, 2025-03-31.")]

FIELDS = {
    "name": "name",
    "protocol": "protocol",
    "title": "display_name",
    "input_price": "input_price",
    "output_price": "output_price",
    "cached_price": "cached_input_price",
    "cache_write_price": "cache_write_price",
    "reasoning_price": "reasoning_price",
    "batch_input_price": "batch_input_price",
    "batch_output_price": "batch_output_price",
    "context_tokens": "context_tokens",
    "cutoff": "training_cutoff",
}
"""The options of `add` and `set`, and the API fields they set."""
PARAMS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "stop": "stop",
    "system_prompt": "system_prompt",
    "extra_body": "extra_body",
    "thinking_budget": "thinking_budget",
    "effort": "effort",
    "thinking": "thinking",
    "chat_template_kwargs": "chat_template_kwargs",
    "timeout": "request_timeout_s",
}
"""The same for the fields of `params`."""
NOT_CLEARED = frozenset({"name", "protocol", "display_name"})


def _prices(model: Json) -> str:
    pair = (model["input_price"], model["output_price"])
    if None in pair:
        return "unknown"
    entered = model["prices_entered_at"]
    dated = f", {'of' if model['price_source'] else 'entered'} {entered[:10]}" if entered else ""
    return f"{pair[0]:g} / {pair[1]:g}{dated}{' (old)' if model['price_warning'] else ''}"


COLUMNS: Columns = {
    "Model": "slug",
    "Provider": "provider",
    "Name there": "name",
    "Protocol": "protocol",
    "$ per M tokens in/out": _prices,
    "Description": "display_name",
}

models_app = command_group("Models that can be measured: list (the default), add, set, remove, sync.")


@models_app.command("list")
def list_models(
    archived: Annotated[bool, typer.Option("--archived", help="Also removed models that have results.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List models."""
    with command(as_json) as cmd:
        models = list(cmd.client.pages("/api/models", archived=archived or None))
        cmd.out.items(models, COLUMNS, empty="No models.")
        for model in models:
            for note in model["notes"]:
                cmd.out.note(f"{clean(model['slug'])}: {clean(note)}")
            if model["price_warning"]:
                cmd.out.note(f"{clean(model['slug'])}: {clean(model['price_warning'])}")


def _fields_of(context: typer.Context, fields: dict[str, str]) -> Json:
    given = {field: context.params[option] for option, field in fields.items()}
    return {field: value for field, value in given.items() if value not in (None, [], ())}


@models_app.command("add")
def add_model(
    context: typer.Context,
    slug: Annotated[str, typer.Argument(help="Its name here: lower case letters, digits, . _ : / -")],
    provider: Annotated[str, typer.Option(help="anthropic, openai, or one of your own.")],
    name: Annotated[str | None, typer.Option(help="Its name at the provider. Default: the slug.")] = None,
    protocol: Protocol = None,
    title: Annotated[str, typer.Option(help="A description for people.")] = "",
    input_price: InputPrice = None,
    output_price: OutputPrice = None,
    cached_price: CachedPrice = None,
    cache_write_price: CacheWritePrice = None,
    reasoning_price: ReasoningPrice = None,
    batch_input_price: BatchInputPrice = None,
    batch_output_price: BatchOutputPrice = None,
    context_tokens: ContextTokens = None,
    cutoff: Cutoff = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    top_k: TopK = None,
    seed: Seed = None,
    stop: StopAt = None,
    system_prompt: SystemPrompt = None,
    extra_body: ExtraBody = None,
    thinking_budget: ThinkingBudget = None,
    effort: Effort = None,
    thinking: Thinking = None,
    chat_template_kwargs: TemplateArguments = None,
    timeout: Timeout = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a model."""
    body = {
        "slug": slug,
        "provider": provider,
        "name": slug,
        **_fields_of(context, FIELDS),
        "params": _fields_of(context, PARAMS),
    }
    with command(as_json) as cmd:
        model = cmd.client.post("/api/models", body)
        cmd.out.result(model, f"Added {clean(model['slug'])}. Run it: benchyard run -m {clean(model['slug'])} -n 10")


@models_app.command("set")
def set_model(
    context: typer.Context,
    model: ModelArgument,
    name: Annotated[str | None, typer.Option(help="Its name at the provider.")] = None,
    protocol: Protocol = None,
    title: Annotated[str | None, typer.Option(help="A description for people.")] = None,
    input_price: InputPrice = None,
    output_price: OutputPrice = None,
    cached_price: CachedPrice = None,
    cache_write_price: CacheWritePrice = None,
    reasoning_price: ReasoningPrice = None,
    batch_input_price: BatchInputPrice = None,
    batch_output_price: BatchOutputPrice = None,
    context_tokens: ContextTokens = None,
    cutoff: Cutoff = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    top_k: TopK = None,
    seed: Seed = None,
    stop: StopAt = None,
    system_prompt: SystemPrompt = None,
    extra_body: ExtraBody = None,
    thinking_budget: ThinkingBudget = None,
    effort: Effort = None,
    thinking: Thinking = None,
    chat_template_kwargs: TemplateArguments = None,
    timeout: Timeout = None,
    clear: Annotated[
        list[str] | None, typer.Option(metavar="OPTION", help="Remove a value, such as temperature; may be repeated.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Change prices or settings of a model; omitted options change nothing. Prices are dated today."""
    options = FIELDS | PARAMS
    cleared = {options.get(word, word) for word in (option.replace("-", "_") for option in clear or ())}
    clearable = set(options.values()) - NOT_CLEARED
    if unknown := cleared - clearable:
        raise typer.BadParameter(f"{', '.join(sorted(unknown))} cannot be removed", param_hint="--clear")
    body = _fields_of(context, FIELDS) | dict.fromkeys(cleared & set(FIELDS.values()))
    params = _fields_of(context, PARAMS)
    if not body and not params and not cleared:
        raise typer.BadParameter("name something to change, such as --input-price 3 --output-price 15")
    path = f"/api/models/{quote(model)}"
    with command(as_json) as cmd:
        if params or cleared & set(PARAMS.values()):
            unchanged = {name: value for name, value in cmd.client.get(path)["params"].items() if name not in cleared}
            body["params"] = unchanged | params
        changed = cmd.client.patch(path, body)
        cmd.out.result(changed, f"{clean(changed['slug'])}: {_prices(changed)} dollars per million tokens in/out.")


@models_app.command("remove")
def remove_model(model: ModelArgument, as_json: JsonFlag = False) -> None:
    """Remove a model; its results stay."""
    with command(as_json) as cmd:
        cmd.client.delete(f"/api/models/{quote(model)}")
        cmd.out.result({"removed": model}, f"Removed {clean(model)}.")


@models_app.command("sync")
def sync_models(as_json: JsonFlag = False) -> None:
    """Get the providers' model lists: add new models, mark those that disappeared."""
    with command(as_json) as cmd:
        report = cmd.client.post("/api/models/sync")
        cmd.out.result(report, lambda: _changes(report))
        for provider, why in report["failed"].items():
            cmd.out.warn(f"{clean(provider)}: {clean(why)}")


def _changes(report: Json) -> RenderableType:
    if not report["providers"]:
        return Text("No provider is configured: set ANTHROPIC_API_KEY, OPENAI_API_KEY or one of your own.")
    words = {"added": "added", "returned": "available again", "missing": "no longer available"}
    rows = [(slug, word) for name, word in words.items() for slug in report[name]]
    return table(("Model", "Change"), rows) if rows else Text("The catalogue is up to date.")
