"""The command `import`: answers in logs of other harnesses become runs of their models. No model is called."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.api.client import Client, Json
from orchestrator.cli.commands.measuring.grading import SizeOption, say_accepted, submit_answers
from orchestrator.cli.commands.measuring.runs import raise_for, say_remarks, wait
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.runs import result_table
from orchestrator.cli.view.text import clean
from orchestrator.datasets.errors import BadSource
from orchestrator.grading.harness_logs import recognised

PROVIDER = "imported"
"""Of models that are known by their answers only."""


@dataclass(frozen=True)
class ImportedFile:
    path: Path
    benchmark: str
    model: str
    """As the file or the user names it."""


def import_answers(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Logs of Inspect (.eval, .json), samples of lm-eval, or exports (.jsonl)."),
    ],
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", "-b", help="The benchmark of the answers. Default: the task in the file.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Who answered. Default: as the file says.")] = None,
    instance_type: SizeOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Grade the answers in logs of other harnesses by our rules, as runs of the models that gave them.

    The runs can be compared and are on the leaderboard. Answers are matched to problems by id, or by what was asked.
    """
    with command(as_json) as cmd:
        names = {str(row["name"]) for row in cmd.client.items("/api/benchmarks")}
        wanted = [_described(path, benchmark, model, names) for path in files]
        accepted = [_submit(cmd, file, instance_type) for file in wanted]
        runs = wait(cmd, [str(row["run_id"]) for row in accepted])
        cmd.out.result({"runs": runs, "accepted": accepted}, lambda: result_table(runs, now()))
        say_remarks(cmd, runs)
        raise_for(runs)


def _described(path: Path, benchmark: str | None, model: str | None, benchmarks: set[str]) -> ImportedFile:
    """What the file is, before anything is sent."""
    if not path.is_file():
        raise BadUsage(f"There is no file {clean(path)}.")
    try:
        log = recognised(path)
    except BadSource as error:
        raise CliError(clean(error.detail)) from error
    except OSError as error:
        raise CliError(f"{clean(path)} cannot be read: {error.strerror}.") from error
    if log is None:
        raise CliError(
            f"{clean(path.name)} is neither a log of Inspect nor samples of lm-eval nor an export of ours; "
            "`benchyard grade` reads more formats."
        )
    name = benchmark or log.task
    if benchmark is not None and benchmark not in benchmarks:
        raise CliError(f"There is no benchmark {clean(benchmark)}; `benchyard benchmarks` lists them.")
    if name not in benchmarks:
        says = f"says {clean(log.task)!r}, which is no benchmark here" if log.task else "does not say which"
        raise CliError(f"Name the benchmark with --benchmark: {clean(path.name)} {says}.")
    answered_by = model or log.model
    if answered_by is None:
        raise CliError(f"{clean(path.name)} does not say which model answered; name it with --model.")
    return ImportedFile(path, str(name), answered_by)


def _submit(cmd: Command, file: ImportedFile, instance_type: str | None) -> Json:
    slug = _model(cmd, file.model)
    accepted = submit_answers(cmd.client, file.path, file.benchmark, instance_type, model=slug)
    say_accepted(cmd, accepted)
    return {**accepted, "file": str(file.path), "model": slug}


def _model(cmd: Command, name: str) -> str:
    """The slug of the catalogue's model of this name; one that is not there yet is added."""
    slug = slug_of(name)
    known = _known(cmd.client, name, slug)
    if known is not None:
        return known
    body = {"slug": slug, "provider": PROVIDER, "name": name[:200], "display_name": name[:200]}
    cmd.client.post("/api/models", body)
    cmd.out.note(f"Added the model {slug}. It is known by its answers only and cannot be asked.")
    return slug


def _known(client: Client, name: str, slug: str) -> str | None:
    models = client.pages("/api/models")
    for model in models:
        if model["slug"] in (name, slug):
            return str(model["slug"])
    named = [model for model in models if name in (model["name"], f"{model['provider']}/{model['name']}")]
    return str(named[0]["slug"]) if len(named) == 1 else None


def slug_of(name: str) -> str:
    """A slug for the catalogue: lower case, and nothing but letters, digits and . _ : / -"""
    slug = re.sub(r"[^a-z0-9._:/-]+", "-", name.lower()).strip("._:/-")[:199]
    if not slug:
        raise CliError(f"The name {clean(name)!r} has no letter or digit; name the model with --model.")
    return slug
