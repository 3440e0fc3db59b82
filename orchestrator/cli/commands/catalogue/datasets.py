"""Commands about datasets: list, show, add, verify, remove. They use the running service, or
without one the data directory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Protocol
from urllib.parse import quote

import typer
from rich.console import Group
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from orchestrator.cli.api.client import UPLOAD_S, Client, Json, given
from orchestrator.cli.context import Command, command, command_group
from orchestrator.cli.errors import INTERRUPTED, BadUsage, CliError
from orchestrator.cli.local.service_process import service_runs
from orchestrator.cli.view.datasets import dataset_view, dates_of
from orchestrator.cli.view.output import Columns, JsonFlag, Output
from orchestrator.cli.view.text import clean
from orchestrator.errors import ServiceError
from orchestrator.settings import Settings

POLL_S = 0.3

Report = Callable[[str, str, int, int], None]
NameArgument = Annotated[str, typer.Argument(help="A dataset.")]


DATASET_COLUMNS: Columns = {
    "Dataset": "name",
    "Problems": "problems",
    "Dates": dates_of,
    "Left out": lambda row: row["left_out"] or "–",
    "Digest": lambda row: row["pack_digest"][:19],
    "From": "source",
    "Licence": "licence",
}

datasets_app = command_group(
    "Datasets of the benchmarks: list (the default), show, add, verify, remove. No service is needed."
)


class Datasets(Protocol):
    def list(self) -> list[Json]: ...
    def show(self, name: str, records: int) -> Json: ...
    def add(self, name: str, source: str | None, options: Json, report: Report) -> Json: ...
    def verify(self, name: str) -> Json: ...
    def remove(self, name: str) -> None: ...


class ServiceDatasets:
    """The datasets of a running service."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> list[Json]:
        return self._client.items("/api/datasets")

    def show(self, name: str, records: int) -> Json:
        shown = self._client.get(_path(name), records=records)
        if shown["dataset"] is None:
            raise CliError(clean(shown["error"] or f"The dataset {name!r} is still being added: {shown['state']}."))
        return {**shown["dataset"], "statistics": shown["statistics"], "records": shown["records"]}

    def add(self, name: str, source: str | None, options: Json, report: Report) -> Json:
        if source is None or _is_address(source):
            self._client.post("/api/datasets", given(name=name, source=source or None, **options))
        else:
            if any(options[field] for field in ("release", "revision", "config", "split")):
                raise BadUsage("Release, revision, config and split cannot be chosen for a file.")
            file = _file(source)
            wishes = given(format=options["format"], sha256=options["sha256"])
            self._client.upload("PUT", _path(name), file, filename=file.name, **wishes)
        return wait_for_dataset(self._client, name, report)

    def verify(self, name: str) -> Json:
        return self._client.post(f"{_path(name)}/verify", timeout_s=UPLOAD_S)

    def remove(self, name: str) -> None:
        self._client.delete(_path(name))


def wait_for_dataset(client: Client, name: str, report: Report) -> Json:
    """Waits until a dataset is added; raises `CliError` if that failed."""
    while (job := client.get(_path(name)))["state"] == "running":
        report(job["step"], job["file"], job["done_bytes"], job["total_bytes"])
        time.sleep(POLL_S)
    if job["state"] != "done":
        raise CliError(clean(job["error"]))
    return {field: job[field] for field in ("name", "pack_digest", "problems", "left_out", "left_out_lines")}


class LocalDatasets:
    """The datasets of a data directory."""

    def __init__(self, settings: Settings) -> None:
        from orchestrator.datasets.catalogue import Catalogue

        self._data_dir = settings.data.absolute()
        self._room = settings.room
        self._catalogue = Catalogue(self._data_dir)
        self._catalogue.prepare()

    def list(self) -> list[Json]:
        return [_description(info) for info in self._catalogue.benchmarks()]

    def show(self, name: str, records: int) -> Json:
        statistics = {**asdict(self._catalogue.statistics(name)), "flagged": len(self._catalogue.flagged(name))}
        previews = [{**asdict(it.entry), "record": it.record} for it in self._catalogue.preview(name, records)]
        return {**_description(self._catalogue.get(name)), "statistics": statistics, "records": previews}

    def add(self, name: str, source: str | None, options: Json, report: Report) -> Json:
        from orchestrator.benchmarks.building.hub_records import HubRecords
        from orchestrator.benchmarks.published.catalogue import chosen, refuse_choices
        from orchestrator.benchmarks.service import BenchmarkFiles
        from orchestrator.datasets.fetching import library

        definition = chosen(name) if source is None else None
        if definition is not None:
            refuse_choices(name, options)
            hub = HubRecords(self._data_dir, self._room)
            built = BenchmarkFiles(self._catalogue, self._room, hub).build(definition, {}, report)
        else:
            wishes = {"form" if field == "format" else field: value for field, value in options.items()}
            order = library.Order(name, source, **wishes)
            built = library.add(self._data_dir, order, report=report, room=self._room)
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
        return _description(self._catalogue.get(name))

    def remove(self, name: str) -> None:
        if name == "sample":
            raise CliError("The bundled sample cannot be removed.")
        self._catalogue.remove(name)


def _path(name: str) -> str:
    return f"/api/datasets/{quote(name, safe='')}"


def _description(info: Any) -> Json:
    first, last = info.window or (None, None)
    names = ("name", "adapter", "pack_digest", "problems", "difficulties", "description", "licence", "source", "revision")
    return {
        **{name: getattr(info, name) for name in names},
        "first_date": first and first.isoformat(),
        "last_date": last and last.isoformat(),
        "left_out": len(info.left_out),
        "left_out_lines": list(info.left_out),
        "files": [{"name": name, "sha256": sha256} for name, sha256 in info.files],
    }


@contextmanager
def _datasets(as_json: bool) -> Iterator[tuple[Command, Datasets]]:
    with command(as_json) as cmd:
        try:
            is_served = service_runs(cmd.settings, cmd.connection, cmd.client)
            yield cmd, ServiceDatasets(cmd.client) if is_served else LocalDatasets(cmd.settings)
        except ServiceError as error:
            raise CliError(clean(error.detail)) from error


@datasets_app.command("list")
def list_datasets(as_json: JsonFlag = False) -> None:
    """List datasets."""
    with _datasets(as_json) as (cmd, datasets):
        cmd.out.items(datasets.list(), DATASET_COLUMNS, right=("Problems", "Left out"))


@datasets_app.command("show")
def show_dataset(
    name: NameArgument,
    records: Annotated[int, typer.Option(min=0, max=20, help="Show this many of its problems.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Show a dataset: source, licence, what was left out and why, problems by kind, and some of them."""
    with _datasets(as_json) as (cmd, datasets):
        dataset = datasets.show(name, records)
        cmd.out.result(dataset, lambda: Group(*dataset_view(dataset)))


@datasets_app.command("add")
def add_dataset(
    name: Annotated[str, typer.Argument(help="A known benchmark, or a name of your own with --from.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE|URL",
            help="A local file, an http(s) address, or hf://owner/name on the Hugging Face hub.",
        ),
    ] = None,
    release: Annotated[
        str | None, typer.Option(help="LiveCodeBench: release_v1 ... release_v6, release_latest, v4_v6. Others: github.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="On the hub: a branch, tag or commit.")] = None,
    config: Annotated[str | None, typer.Option(help="On the hub: the config (subset).")] = None,
    split: Annotated[str | None, typer.Option(help="On the hub: the split.")] = None,
    form: Annotated[str | None, typer.Option("--format", help="The benchmark whose format the file has.")] = None,
    sha256: Annotated[str | None, typer.Option(help="Refuse a file with another checksum.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Download and build a dataset. An interrupted download is resumed, also by a later command."""
    if source is not None and not _is_address(source):
        _file(source)
    options = {
        "release": release,
        "format": form,
        "sha256": sha256,
        "revision": revision,
        "config": config,
        "split": split,
    }
    with _datasets(as_json) as (cmd, datasets):
        try:
            with progress_shown(cmd.out) as report:
                built = datasets.add(name, source, options, report)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        cmd.out.warn_some([f"Left out: {clean(line)}" for line in built["left_out_lines"]], built["left_out"])
        cmd.out.result(built, f"Added {clean(name)}: {built['problems']} problems, {clean(built['pack_digest'])}.")


@datasets_app.command("verify")
def verify_dataset(name: NameArgument, as_json: JsonFlag = False) -> None:
    """Read a whole dataset and compare its digest. Exit code 1 if it is damaged."""
    with _datasets(as_json) as (cmd, datasets):
        dataset = datasets.verify(name)
        sentence = f"{clean(name)} is intact: {dataset['problems']} problems, {clean(dataset['pack_digest'])}."
        cmd.out.result({"ok": True, **dataset}, sentence)


@datasets_app.command("remove")
def remove_dataset(name: NameArgument, as_json: JsonFlag = False) -> None:
    """Delete a dataset; results stay."""
    with _datasets(as_json) as (cmd, datasets):
        datasets.remove(name)
        cmd.out.result({"removed": name}, f"Removed {clean(name)}.")


def _is_address(source: str) -> bool:
    return source.startswith(("http://", "https://", "hf://"))


def _file(source: str) -> Path:
    path = Path(source).expanduser()
    if not path.is_file():
        raise BadUsage(f"There is no file {clean(path)}.")
    return path


@contextmanager
def progress_shown(out: Output) -> Iterator[Report]:
    """A progress bar on a terminal, a line per file elsewhere."""
    if not out.interactive:
        reported: set[tuple[str, str]] = set()

        def line(step: str, file: str, _done: int, _total: int) -> None:
            if step and (step, file) not in reported:
                reported.add((step, file))
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
            if step and current != (label := f"{step} {clean(file)}"):
                current = label
                progress.reset(task, description=label)
            progress.update(task, completed=done, total=total or None)

        yield bar
