"""Commands about harness runs: harness (list of presets), build, run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.api.client import given
from orchestrator.cli.commands.measuring.runs import finish, read_span, submit
from orchestrator.cli.context import command
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.files.command_files import file_body
from orchestrator.cli.files.preset_body import find_preset
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.text import clean
from orchestrator.commands.words import read_variable
from orchestrator.harnesses.presets import PRESETS
from orchestrator.images.build import Builder, BuildFailed, build_all, process_environment
from orchestrator.images.sources import SourcesMissing, find_sources
from runner.contract.harness import ResultsFormat

harness_app = typer.Typer()

Files = Annotated[
    list[Path] | None,
    typer.Option("--file", metavar="PATH", help="A file to send along, for its working directory. May be repeated."),
]


@harness_app.callback(invoke_without_command=True)
def harness_group(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Other evaluation harnesses: list of presets (the default), build, run."""
    if context.invoked_subcommand is None:
        with command(as_json) as cmd:
            rows = [{"name": preset.name, "title": preset.title, "image": preset.image} for preset in PRESETS.values()]
            lines = [f"{row['name']}  {row['title']}, {row['image']}: benchyard harness build {row['name']}" for row in rows]
            cmd.out.result({"items": rows}, "\n".join(lines))


@harness_app.command("build")
def build(
    names: Annotated[list[str], typer.Argument(metavar="PRESET...", help="inspect, lm-eval.")],
    base: Annotated[
        str | None,
        typer.Option("--base", help="Image to build on: Python 3.13 on Debian; or BENCHYARD_BASE.", metavar="IMAGE"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Build the image of a preset from locked packages. An up-to-date image is not built again."""
    presets = [find_preset(name) for name in dict.fromkeys(names)]
    with command(as_json) as cmd:
        images = [preset.image_name for preset in presets]
        try:
            builder = Builder(find_sources(), process_environment(cmd.settings.docker_host), cmd.out.note)
            builds = build_all(builder, images, base=base, tags={}, say=cmd.out.say)
        except (BuildFailed, SourcesMissing) as error:
            raise CliError(f"No image was built: {error}") from error
        if cmd.out.as_json:
            cmd.out.json([{"image": built.image, "tag": built.tag, "built": not built.was_current} for built in builds])


@harness_app.command("run")
def run(
    argv: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The harness with its arguments.")],
    image: Annotated[str, typer.Option("--image", help="An image that BENCHYARD_COMMAND_IMAGES allows.")],
    model: Annotated[str, typer.Option("--model", "-m", help="Slug or id of a model.")],
    results: Annotated[ResultsFormat, typer.Option(help="Format of its results.")] = ResultsFormat.JSON_LINES,
    path: Annotated[
        list[str] | None, typer.Option("--results-path", metavar="PATTERN", help="Where they are, such as `out/*.xml`.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the benchmark; default: the program's name.")] = None,
    env: Annotated[list[str] | None, typer.Option("--env", "-e", metavar="NAME=VALUE", help="No secrets.")] = None,
    file: Files = None,
    instance_type: Annotated[str | None, typer.Option(help="Size of the container; `benchyard fleet` lists them.")] = None,
    provider: Annotated[str | None, typer.Option(help="Only on these machines: local, or the provider of agents.")] = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="Maximum cost of the run.")] = None,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help="Longest duration of the run.")] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the id and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run a harness of any allowed image once; its results become the items of the run.

    Exit code: 0 completed, 3 failed, 4 cancelled.
    """
    harness = given(
        image=image,
        command=argv,
        name=name,
        env=dict(map(_variable, env or ())) or None,
        files=[file_body(each, Path()) for each in file or ()] or None,
        results=given(format=results.value, paths=path or None),
    )
    body = given(
        kind="harness",
        model_id=model,
        harness=harness,
        instance_type=instance_type,
        provider=provider,
        budget_usd=budget,
        deadline_s=None if deadline is None else read_span(deadline),
    )
    with command(as_json) as cmd:
        (run_id,) = submit(cmd, [body])
        if detach:
            cmd.out.result({"runs": [{"id": run_id}]}, run_id)
        else:
            finish(cmd, [run_id])


def _variable(text: str) -> tuple[str, str]:
    try:
        return read_variable(text)
    except ValueError as error:
        raise BadUsage(f"--env {clean(text)!r} {error}.") from None
