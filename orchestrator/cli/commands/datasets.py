"""Commands about datasets: add, list, verify, remove. Through the service if one runs, else on the data directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.text import Text

from orchestrator.cli.api.client import Client
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import INTERRUPTED, BadUsage, CliError
from orchestrator.cli.local.where import service_runs
from orchestrator.cli.view.output import JsonFlag, Output, table
from orchestrator.cli.view.text import clean
from orchestrator.errors import ServiceError
from orchestrator.settings import Settings

POLL_S = 0.3
SHOWN = 10

Json = dict[str, Any]
Report = Callable[[str, str, int, int], None]

datasets_app = typer.Typer(help="Datasets of the benchmarks: list, add, verify, remove.", no_args_is_help=False)


class Shelf(Protocol):
    """Where the datasets are."""

    def list(self) -> list[Json]: ...
    def add(self, name: str, source: str | None, options: Json, report: Report) -> Json: ...
    def verify(self, name: str) -> Json: ...
    def remove(self, name: str) -> None: ...


class ServiceShelf:
    """Those of a running service."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> list[Json]:
        return self._client.datasets()

    def add(self, name: str, source: str | None, options: Json, report: Report) -> Json:
        options = {key: value for key, value in options.items() if value is not None}
        if source is None or source.startswith(("http://", "https://")):
            self._client.add_dataset({"name": name, **options} | ({"source": source} if source else {}))
        else:
            if options.pop("release", None):
                raise BadUsage("A release can be chosen only without --from.")
            self._client.upload_dataset(name, _file(source), options)
        while (job := self._client.dataset(name))["state"] == "running":
            report(job["step"], job["file"], job["done_bytes"], job["total_bytes"])
            time.sleep(POLL_S)
        if job["state"] != "done":
            raise CliError(clean(job["error"]))
        return {key: job[key] for key in ("name", "pack_digest", "problems", "left_out", "left_out_lines")}

    def verify(self, name: str) -> Json:
        return self._client.verify_dataset(name)

    def remove(self, name: str) -> None:
        self._client.remove_dataset(name)


class LocalShelf:
    """Those of a data directory."""

    def __init__(self, settings: Settings) -> None:
        from orchestrator.datasets.catalogue import Catalogue

        self._data_dir = data_dir = settings.data.absolute()
        self._room = settings.room
        self._catalogue = Catalogue(data_dir)
        self._catalogue.prepare()

    def list(self) -> list[Json]:
        return [_described(info) for info in self._catalogue.benchmarks()]

    def add(self, name: str, source: str | None, options: Json, report: Report) -> Json:
        from orchestrator.datasets.fetching import library

        built = library.add(
            self._data_dir,
            name,
            source=source,
            release=options["release"],
            form=options["format"],
            sha256=options["sha256"],
            report=report,
            room=self._room,
        )
        reasons = list(map(str, built.left_out))
        return {
            "name": name,
            "pack_digest": built.digest,
            "problems": built.problems,
            "left_out": len(reasons),
            "left_out_lines": reasons[:1000],
        }

    def verify(self, name: str) -> Json:
        self._catalogue.verify(name)
        return _described(self._catalogue.get(name))

    def remove(self, name: str) -> None:
        if name == "sample":
            raise CliError("The bundled sample cannot be removed.")
        self._catalogue.remove(name)


def _described(info: Any) -> Json:
    first, last = info.window or (None, None)
    return {
        "name": info.name,
        "adapter": info.adapter,
        "pack_digest": info.pack_digest,
        "problems": info.problems,
        "difficulties": info.difficulties,
        "first_date": first and first.isoformat(),
        "last_date": last and last.isoformat(),
        "description": info.description,
        "licence": info.licence,
        "source": info.source,
        "left_out": len(info.left_out),
        "left_out_lines": list(info.left_out),
    }


@contextmanager
def _shelf(as_json: bool) -> Iterator[tuple[Command, Shelf]]:
    with command(as_json) as cmd:
        try:
            yield cmd, ServiceShelf(cmd.client) if service_runs(cmd) else LocalShelf(cmd.settings)
        except ServiceError as error:
            raise CliError(clean(error.detail)) from error


@datasets_app.callback(invoke_without_command=True)
def datasets(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Datasets of the benchmarks: list (the default), add, verify, remove. No service is needed."""
    if context.invoked_subcommand is None:
        list_datasets(as_json=as_json)


@datasets_app.command("list")
def list_datasets(as_json: JsonFlag = False) -> None:
    """List datasets."""
    with _shelf(as_json) as (cmd, shelf):
        found = shelf.list()
        rows = [
            (
                each["name"],
                each["problems"],
                " to ".join(str(day) for day in (each["first_date"], each["last_date"]) if day) or "–",
                each["left_out"] or "–",
                each["pack_digest"][:19],
                each["source"],
                each["licence"],
            )
            for each in found
        ]
        columns = ("Dataset", "Problems", "Dates", "Left out", "Digest", "From", "Licence")
        cmd.out.result({"items": found}, lambda: table(columns, rows, right=("Problems", "Left out")))


@datasets_app.command("add")
def add_dataset(
    name: Annotated[str, typer.Argument(help="A known benchmark, or a name of your own with --from.")],
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE|URL", help="A local file or an http(s) address, not the public one."),
    ] = None,
    release: Annotated[
        str | None, typer.Option(help="LiveCodeBench: release_v1 ... release_v6, release_latest, v4_v6.")
    ] = None,
    form: Annotated[str | None, typer.Option("--format", help="The benchmark whose format the file has.")] = None,
    sha256: Annotated[str | None, typer.Option(help="Refuse the file if it has another one.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Fetch and build a dataset. A download that breaks off goes on where it was, also with a later command."""
    if source is not None and not source.startswith(("http://", "https://")):
        _file(source)
    options = {"release": release, "format": form, "sha256": sha256}
    with _shelf(as_json) as (cmd, shelf):
        try:
            with _progress(cmd.out) as report:
                built = shelf.add(name, source, options, report)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        for line in built["left_out_lines"][:SHOWN]:
            cmd.out.warn(f"Left out: {clean(line)}")
        if built["left_out"] > SHOWN:
            cmd.out.warn(f"... and {built['left_out'] - SHOWN} more left out; --json lists them.")
        digest = clean(built["pack_digest"])
        cmd.out.result(built, lambda: Text(f"Added {clean(name)}: {built['problems']} problems, {digest}."))


@datasets_app.command("verify")
def verify_dataset(name: Annotated[str, typer.Argument(help="A dataset.")], as_json: JsonFlag = False) -> None:
    """Read all of a dataset and compare it with its digest. Exit code 1 if it is damaged."""
    with _shelf(as_json) as (cmd, shelf):
        found = shelf.verify(name)
        sentence = f"{clean(name)} is whole: {found['problems']} problems, {clean(found['pack_digest'])}."
        cmd.out.result({"ok": True, **found}, lambda: Text(sentence))


@datasets_app.command("remove")
def remove_dataset(name: Annotated[str, typer.Argument(help="A dataset.")], as_json: JsonFlag = False) -> None:
    """Delete a dataset; results stay."""
    with _shelf(as_json) as (cmd, shelf):
        shelf.remove(name)
        cmd.out.result({"removed": name}, lambda: Text(f"Removed {clean(name)}."))


def _file(source: str) -> Path:
    path = Path(source).expanduser()
    if not path.is_file():
        raise BadUsage(f"There is no file {clean(path)}.")
    return path


@contextmanager
def _progress(out: Output) -> Iterator[Report]:
    """A moving bar on a terminal, a line per file elsewhere."""
    if not out.interactive:
        seen: set[tuple[str, str]] = set()

        def line(step: str, file: str, _done: int, _total: int) -> None:
            if step and (step, file) not in seen:
                seen.add((step, file))
                out.note(f"{step} {clean(file)}")

        yield line
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=out.errors, transient=True) as progress:
        task = progress.add_task("begin", total=None)
        current = ""

        def bar(step: str, file: str, done: int, total: int) -> None:
            nonlocal current
            if step and current != (what := f"{step} {clean(file)}"):
                current = what
                progress.reset(task, description=what)
            progress.update(task, completed=done, total=total or None)

        yield bar
