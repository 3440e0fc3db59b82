"""Output of commands: results on standard output, everything else on standard error; one JSON value with --json."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.view.text import clean

SHOWN_LINES = 10
WIDE = 400
"""Without a terminal, lines are not wrapped."""

Columns = Mapping[str, str | Callable[[Any], object]]
"""The headings of a table, each with the field it shows or a function of the row."""

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output, for programs.")]

STATUS_STYLES = {
    "pending": "dim",
    "starting": "cyan",
    "running": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
}


def make_console(stream: Any) -> Console:
    terminal = stream.isatty()
    return Console(
        file=stream,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=not terminal,
        force_terminal=terminal,
        width=None if terminal else WIDE,
    )


class Output:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.console = make_console(sys.stdout)
        self.errors = make_console(sys.stderr)

    @property
    def interactive(self) -> bool:
        """Whether a person watches: progress bars are used then, otherwise one line per change."""
        return not self.as_json and sys.stderr.isatty() and sys.stdout.isatty()

    def result(self, value: Any, show: str | Callable[[], RenderableType]) -> None:
        """Prints the command's result: as JSON, or as a sentence or what `show` returns."""
        if self.as_json:
            self.json(value)
        else:
            self.console.print(Text(show) if isinstance(show, str) else show())

    def items(
        self, items: Sequence[Any], columns: Columns, *, right: Sequence[str] = (), empty: str = "", value: Any = None
    ) -> None:
        """Prints a list as the result, or `empty` if it has no items. Its JSON is an object with `items`, or `value`."""
        document = {"items": items} if value is None else value
        self.result(document, empty if empty and not items else lambda: records_table(items, columns, right=right))

    def json(self, value: Any) -> None:
        # ASCII only, so that nothing in it can control a terminal.
        sys.stdout.write(json.dumps(value, indent=2 if sys.stdout.isatty() else None) + "\n")
        sys.stdout.flush()

    def say(self, sentence: str = "", style: str = "") -> None:
        """For people only."""
        if not self.as_json:
            self.console.print(Text(sentence, style))

    def note(self, sentence: str) -> None:
        """Progress; never part of the result."""
        if not self.as_json:
            self.errors.print(Text(sentence, "dim"))

    def warn(self, sentence: str) -> None:
        self.errors.print(Text(sentence, "yellow"))

    def warn_some(self, lines: Sequence[str], count: int, verb: str = "left out") -> None:
        """Prints the first of `count` lines; the JSON result has them all."""
        for line in lines[:SHOWN_LINES]:
            self.warn(line)
        if count > SHOWN_LINES:
            self.warn(f"... and {count - SHOWN_LINES} more {verb}; --json lists them.")


def write_out(pieces: Iterable[bytes]) -> None:
    """Writes a file to standard output: byte for byte for programs; on a terminal with control characters made visible,
    since models wrote some of it.
    """
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    for piece in pieces:
        sys.stdout.write(clean(decoder.decode(piece), lines=True))
    sys.stdout.write(clean(decoder.decode(b"", final=True), lines=True))
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = ()) -> Table:
    """A plain table; a cell is text, which is sanitised, or a `Text`."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in columns:
        grid.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(clean(cell)) for cell in row))
    return grid


def records_table(records: Sequence[Any], columns: Columns, *, right: Sequence[str] = ()) -> Table:
    rows = [[row[cell] if isinstance(cell, str) else cell(row) for cell in columns.values()] for row in records]
    return table(tuple(columns), rows, right=right)


def facts(pairs: Sequence[tuple[str, object]]) -> Table:
    """Names and values, one per line; empty values are left out."""
    grid = Table.grid(padding=(0, 2))
    for name, value in pairs:
        if value not in (None, ""):
            grid.add_row(Text(name, "dim"), value if isinstance(value, Text) else Text(clean(value), overflow="fold"))
    return grid


def status_text(status: object) -> Text:
    word = clean(status)
    return Text(word, STATUS_STYLES.get(word, ""))
