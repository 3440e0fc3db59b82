"""Commands about lists of prices: list, show, update, use."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from orchestrator.cli.api.client import Json
from orchestrator.cli.api.fetching import fetch_file
from orchestrator.cli.context import command, command_group
from orchestrator.cli.view.output import Columns, JsonFlag, table
from orchestrator.cli.view.text import clean

MAX_BYTES = 16 << 20


def _pair(first: str, second: str) -> Callable[[Json], str]:
    def shown(entry: Json) -> str:
        pair = (entry[first], entry[second])
        return "–" if pair == (None, None) else " / ".join("–" if price is None else f"{price:g}" for price in pair)

    return shown


def _dated(entry: Json) -> str:
    return f"{entry['as_of'][:10]}{' (old)' if entry['price_warning'] else ''}"


COLUMNS: Columns = {
    "Provider": "provider",
    "Model": "model",
    "$ per M in/out": _pair("input_price", "output_price"),
    "Cached/cache write": _pair("cached_input_price", "cache_write_price"),
    "Batch in/out": _pair("batch_input_price", "batch_output_price"),
    "Context": lambda entry: f"{entry['context_tokens']:,}" if entry["context_tokens"] else "–",
    "Of": _dated,
}

prices_app = command_group("Prices from lists: list (the default), show, update, use.")


@prices_app.command("list")
def list_prices(
    provider: Annotated[str | None, typer.Option(help="Of this provider only.")] = None, as_json: JsonFlag = False
) -> None:
    """List prices: of the list that ships, and of the imported one."""
    with command(as_json) as cmd:
        entries = list(cmd.client.pages("/api/prices", provider=provider))
        cmd.out.items(entries, COLUMNS, empty="No prices.")
        old = sum(entry["price_warning"] is not None for entry in entries)
        if old:
            cmd.out.note(f"{old} prices are older than 90 days: check them, or import a newer list.")


@prices_app.command("show")
def show_price(
    provider: Annotated[str, typer.Argument(help="Such as anthropic.")],
    model: Annotated[str, typer.Argument(help="Its name at the provider.")],
    as_json: JsonFlag = False,
) -> None:
    """Show what the lists say of one model, with source and date."""
    with command(as_json) as cmd:
        entry = cmd.client.get("/api/prices/find", provider=provider, model=model)
        cmd.out.result(entry, lambda: _facts(entry))
        if entry["price_warning"]:
            cmd.out.note(clean(entry["price_warning"]))


@prices_app.command("update")
def update_prices(
    source: Annotated[str, typer.Option("--from", metavar="FILE|URL", help="A list of prices in LiteLLM's format.")],
    as_json: JsonFlag = False,
) -> None:
    """Import a list of prices. Prices that you entered stay, and so do costs of earlier calls."""
    with command(as_json) as cmd, tempfile.TemporaryDirectory() as folder:
        file = Path(source)
        if source.startswith(("http://", "https://")):
            file = Path(folder) / "prices.json"
            fetch_file(source, file, MAX_BYTES)
        report = cmd.client.upload("PUT", "/api/prices", file, source=source[:300])
        cmd.out.result(report, lambda: _update(report))
        for name, why in list(report["left_out"].items())[:20]:
            cmd.out.warn(f"left out {clean(name)}: {clean(why)}")
        if report["left_out_count"] > 20:
            cmd.out.warn(f"and {report['left_out_count'] - 20} more; --json names them")


@prices_app.command("use")
def use_list_price(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Slug or id.")], as_json: JsonFlag = False
) -> None:
    """Take a model's prices from the lists again, in the place of those that somebody entered."""
    with command(as_json) as cmd:
        changed = cmd.client.post("/api/prices/use", {"model": model})
        pair = f"{changed['input_price']:g} / {changed['output_price']:g}"
        source = clean(changed["price_source"])
        cmd.out.result(changed, f"{clean(changed['slug'])}: {pair} dollars per million tokens in/out, {source}.")


def _facts(entry: Json) -> RenderableType:
    rows = [(name.replace("_", " "), str(value)) for name, value in entry.items() if value is not None]
    return table(("Fact", "Value"), rows)


def _update(report: Json) -> RenderableType:
    return Text(
        f"Prices taken: {report['entries']:,}. Models changed here: {len(report['changed'])}. "
        f"Entries left out: {report['left_out_count']}."
    )
