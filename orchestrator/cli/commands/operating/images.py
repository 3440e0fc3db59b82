"""Commands about the images that the engine needs: build them from this installation, or pull the runner's image."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli.context import Command, command, command_group
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.view.output import JsonFlag
from orchestrator.engines.docker.cleanup import DockerCleanup
from orchestrator.engines.engine import EngineError, ImageMissing
from orchestrator.images.build import LABEL_SOURCE, Builder, BuildFailed, build_all, default_tag, process_environment
from orchestrator.images.sources import NAMES, SourcesMissing, find_sources
from orchestrator.settings import Settings

BUILD = "benchyard images build"

images_app = command_group("The images that runs start from: show (the default), build, pull.", default="show")


@images_app.command("show")
def show_images(as_json: JsonFlag = False) -> None:
    """Check that the runner's image is on the engine and matches this version."""
    with command(as_json) as cmd:
        image = cmd.settings.runner_image
        api = DockerCleanup(cmd.settings.docker_host)
        try:
            problem = image_problem(cmd.settings, api)
        except EngineError as error:
            raise CliError(str(error)) from error
        finally:
            api.close()
        cmd.out.result(
            {"runner": {"tag": image, "ok": problem is None, "trouble": problem}},
            problem or f"The runner image {image} is on the engine.",
        )


@images_app.command()
def build(
    images: Annotated[
        list[str] | None, typer.Argument(metavar="[IMAGE]...", help="runner (if none is named), orchestrator.")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", help="Image to build on: Python 3.13 on Debian; or BENCHYARD_BASE.", metavar="IMAGE"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Build images from this installation. An up-to-date image is not built again.

    The runner's image gets the name in BENCHYARD_RUNNER_IMAGE (benchyard-runner:latest). The orchestrator's image is needed
    only to run the service in a container.
    """
    names = list(dict.fromkeys(images or ["runner"]))
    if unknown := [name for name in names if name not in NAMES]:
        raise BadUsage(f"There is no image {unknown[0]!r}: {' or '.join(NAMES)}.")
    with command(as_json) as cmd:
        build_images(cmd, names, base)


def build_images(cmd: Command, names: list[str], base: str | None = None) -> None:
    """Builds the named images on the service's engine."""
    tags = {"runner": cmd.settings.runner_image}
    try:
        builder = Builder(find_sources(), process_environment(cmd.settings.docker_host), cmd.out.note)
        builds = build_all(builder, names, base=base, tags=tags, say=cmd.out.say)
    except (BuildFailed, SourcesMissing) as error:
        raise CliError(f"No image was built: {error}") from error
    if cmd.out.as_json:
        cmd.out.json([{"image": built.image, "tag": built.tag, "built": not built.was_current} for built in builds])


@images_app.command()
def pull(as_json: JsonFlag = False) -> None:
    """Pull the runner's image, BENCHYARD_RUNNER_IMAGE, from its registry."""
    with command(as_json) as cmd:
        image = cmd.settings.runner_image
        pull_runner_image(cmd)
        cmd.out.result({"image": image}, f"Pulled {image}.")


def pull_runner_image(cmd: Command) -> None:
    image = cmd.settings.runner_image
    cmd.out.note(f"Pulling {image}.")
    api = DockerCleanup(cmd.settings.docker_host)
    try:
        api.pull(image)
    except EngineError as error:
        also = "" if isinstance(error, ImageMissing) else " Check the name, the network and docker login."
        raise CliError(f"{image} could not be pulled: {error}{also} To build it here: {BUILD}.") from error
    finally:
        api.close()


def image_problem(settings: Settings, api: DockerCleanup) -> str | None:
    """The problem with the runner's image and the command that fixes it, or None."""
    image = settings.runner_image
    described = api.find_image(image)
    if described is None:
        return f"The runner image {image} is not on the engine: {get_image(settings)}."
    source = ((described.get("Config") or {}).get("Labels") or {}).get(LABEL_SOURCE)
    try:
        digest = find_sources().digest("runner")
    except SourcesMissing:
        return None
    if source and source not in (digest, "unknown"):
        return f"The runner image {image} was built from another version than the one installed here: {get_image(settings)}."
    return None


def get_image(settings: Settings) -> str:
    """How to get the runner's image, as part of a sentence."""
    if settings.runner_pull:
        return "pull it with `benchyard images pull`"
    is_own_tag = settings.runner_image == default_tag("runner")
    return f"build it with `{BUILD}`{'' if is_own_tag else f', or get it with docker pull {settings.runner_image}'}"
